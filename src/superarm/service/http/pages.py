"""Pages for people: the dashboard, and the API's documentation, which needs no script at all."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from superarm._html import Markup, plain_table
from superarm._types import JsonObject
from superarm.service.http.admission import OPEN
from superarm.service.http.openapi import document
from superarm.service.http.request import Response
from superarm.service.http.routes import ROUTES, Context, route

__all__ = ["ROUTES", "load_page"]


@cache
def load_page(package: str, name: str, *, pictures: bool = False) -> Response:
    """Return a page of a package, with the style and script that all pages share.

    ``pictures``: the script shows pictures that it has fetched.
    """
    page = files(package).joinpath(name).read_bytes()
    for shared in ("shared.css", "shared.js"):
        text = files("superarm.service.http").joinpath(shared).read_bytes()
        page = page.replace(f"/* {shared} */\n".encode(), text)
    script = page.partition(b"<script>")[2].partition(b"</script>")[0]
    # no script but the page's own, whatever a label may be called
    csp = f"script-src 'sha256-{b64encode(sha256(script).digest()).decode()}'; connect-src 'self'"
    return _page(page, csp + ("; img-src blob:" if pictures else ""))


def _page(page: bytes, csp: str = "") -> Response:
    always = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    headers = ((b"x-frame-options", b"DENY"), (b"referrer-policy", b"no-referrer"))
    return Response(200, page, b"text/html; charset=utf-8", headers, f"{always}; {csp}".encode())


@route("GET", "/", OPEN, documented=False)
def dashboard(context: Context) -> Response:
    """The dashboard."""
    return load_page("superarm.service.http", "dashboard.html")


@route("GET", "/openapi.json", OPEN, documented=False)
def openapi(context: Context) -> Response:
    """The OpenAPI document."""
    return _openapi()


@route("GET", "/docs", OPEN, documented=False)
def docs(context: Context) -> Response:
    """The document, for people."""
    return _docs()


@route("GET", "/favicon.ico", OPEN, documented=False)
def favicon(context: object) -> Response:
    """There is no icon."""
    return Response(204)


@cache
def _openapi() -> Response:
    return Response(200, json.dumps(_document()).encode())


@cache
def _document() -> JsonObject:
    return document(ROUTES)


# ---------------------------------------------------------------- the documentation

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 860px; margin: 0 auto; padding: 24px 16px; }
h1 { font-size: 22px; } h2 { font-size: 17px; margin: 28px 0 4px; overflow-wrap: anywhere; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } h2 code { font-size: inherit; font-weight: 600; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: 8px 10px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
td, th { border-top: 1px solid var(--line); padding: 4px 8px 4px 0;
text-align: left; vertical-align: top; overflow-wrap: anywhere; } .soft { opacity: .7; }
td:first-child { white-space: nowrap; overflow-wrap: normal; }
summary { cursor: pointer; margin: 6px 0; }
"""


@cache
def _docs() -> Response:
    spec = _document()
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>superarm: the API</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style></head><body><h1>superarm: the API</h1>",
        f"<p>{escape(spec['info']['summary'])} For programs: <a href='openapi.json'>openapi.json</a>.</p>",
    ]
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            parts += _operation_html(path, method, operation)
    parts.append("<h2>Types</h2>")
    for name, schema in spec["components"]["schemas"].items():
        required = set(schema.get("required", ()))
        fields = [
            (
                field,
                part.get("description", "") + ("" if field in required else " (optional)"),
                _type_html(part),
            )
            for field, part in schema.get("properties", {}).items()
        ]
        summary = f"<code>{escape(name)}</code> {escape(schema.get('description', ''))}"
        parts.append(f"<details id='{escape(name)}'><summary>{summary}</summary>{_table(fields)}</details>")
    return _page("".join([*parts, "</body></html>"]).encode())


def _operation_html(path: str, method: str, operation: JsonObject) -> Iterator[str]:
    yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
    yield f"<p>{escape(operation['summary'])} <span class='soft'>{escape(operation['description'])}</span></p>"
    if operation["parameters"]:
        yield _table(
            [(p["name"], f"in the {p['in']}", _type_html(p["schema"])) for p in operation["parameters"]]
        )
    if "requestBody" in operation:
        body = operation["requestBody"]["content"]["application/json"]
        yield f"<p>Takes {_type_html(body['schema'])}.</p>"
        for example in body.get("examples", {}).values():
            yield f"<pre>{escape(json.dumps(example['value']))}</pre>"
    success, *errors = operation["responses"].items()
    content_type, content = next(iter(success[1]["content"].items()))
    yield f"<p>Gives {_type_html(content['schema']) if 'schema' in content else escape(content_type)}.</p>"
    rows = [(status, response["description"], "") for status, response in errors]
    yield f"<details><summary>Errors</summary>{_table(rows)}</details>"


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Return a table with rows of a name, a description and HTML."""
    return plain_table((), [(Markup(f"<code>{escape(a)}</code>"), b, Markup(c)) for a, b, c in rows])


def _type_html(schema: JsonObject) -> str:
    """Return a short description of a schema."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'><code>{name}</code></a>"
    if "anyOf" in schema:
        return " or ".join(map(_type_html, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type_html(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type_html(schema['additionalProperties'])}"
    bounds = [f"{sign} {schema[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in schema]
    return escape(" ".join([kind, *bounds]))
