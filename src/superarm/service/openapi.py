"""The OpenAPI document, made from the routes and from the types they name; and as a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from superarm._html import Markup, plain_table
from superarm._types import JsonObject
from superarm.decisions.ids import ID_PATTERN
from superarm.http.http_errors import Error
from superarm.http.pages import html_response
from superarm.http.request import Response
from superarm.service import messages

if TYPE_CHECKING:
    from superarm.http.router import Route

WRITE_STATUSES = (400, 401, 403, 408, 413, 415, 422, 429, 503, 507)
READ_STATUSES = (401, 403, 429, 503)
OPEN_STATUSES = (403, 429, 503, 507)
REFERENCE_TEMPLATE = "#/components/schemas/{name}"
# of every route; some describe more
STATUS_DESCRIPTIONS = {
    200: "The result.",
    400: "The request is not HTTP/1.1 with one Host, or its body is not JSON, or not wanted.",
    401: "The token is missing or wrong.",
    403: "The token's role does not allow it; or there is no token, and it is not for this host name.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "A field is not what it must be; `field` names it.",
    429: "Too many requests.",
    431: "The head of the request is too large.",
    500: "A bug; the log has it under the request's id.",
    503: "Not at the moment: the journal cannot be written, or there are too many connections.",
    507: "The journal is full.",
}


def openapi_document(routes: Sequence[Route]) -> JsonObject:
    """Return the OpenAPI document of all documented routes."""
    named_types = [kind for route in routes for kind in (route.request_type, route.response_type)]
    named_types += [messages.OutcomeRequest, Error]  # items of batches
    body_types = [kind for kind in dict.fromkeys(named_types) if kind is not None]
    schemas, components = msgspec.json.schema_components(body_types, ref_template=REFERENCE_TEMPLATE)
    # what the type cannot express
    components["DecisionRequestBody"]["oneOf"] = [{"required": ["features"]}, {"required": ["scores"]}]
    schema_of = dict(zip(body_types, schemas, strict=True))
    paths: dict[str, JsonObject] = {}
    for route in routes:
        if route.documented:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "superarm",
            "version": "1",
            "summary": "Decisions (sets of labels) and their outcomes, kept in a journal.",
        },
        "servers": [{"url": "./"}],  # beside this document, wherever it is mounted
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route, schema_of: dict[Any, Any], components: JsonObject) -> JsonObject:
    statuses = {200, *(READ_STATUSES if route.roles else OPEN_STATUSES), *route.statuses}
    if route.method == "POST":
        statuses |= {*WRITE_STATUSES}
    elif route.request_type is not None or "{id}" in route.path:
        statuses |= {422}
    operation: JsonObject = {
        "operationId": route.name,
        "summary": (route.endpoint.__doc__ or "").strip(),
        "description": f"Roles: {', '.join(sorted(route.roles))}." if route.roles else "No token is needed.",
        "parameters": [],
        "responses": {str(status): _response(route, status, schema_of) for status in sorted(statuses)},
    }
    if "{id}" in route.path:
        schema = {"type": "string", "pattern": ID_PATTERN}
        operation["parameters"].append({"name": "id", "in": "path", "required": True, "schema": schema})
    if route.request_type is not None and route.method == "GET":
        for name, schema in components[route.request_type.__name__]["properties"].items():
            operation["parameters"].append({"name": name, "in": "query", "schema": schema})
    elif route.request_type is not None:
        body: JsonObject = {"schema": schema_of[route.request_type]}
        if route.examples:
            body["examples"] = {
                f"example-{number}": {"summary": summary, "value": value}
                for number, (summary, value) in enumerate(route.examples.items(), 1)
            }
        operation["requestBody"] = {"required": True, "content": {"application/json": body}}
    return operation


def _response(route: Route, status: int, schema_of: dict[Any, Any]) -> JsonObject:
    content: JsonObject = {"application/json": {"schema": schema_of[Error]}}
    if status < 300:
        is_json = route.content_type == "application/json"
        schema = schema_of.get(route.response_type, {"type": "object"})
        content = {route.content_type: {"schema": schema} if is_json else {}}
    return {"description": route.statuses.get(status) or STATUS_DESCRIPTIONS[status], "content": content}


# ---------------------------------------------------------------- as a page

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


def documentation_page(spec: JsonObject) -> Response:
    """Return an OpenAPI document as a page, which needs no script."""
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
        optional = schema.get("properties", {}).keys() - set(schema.get("required", ()))
        fields = [
            (field, part.get("description", "") + " (optional)" * (field in optional), _type_html(part))
            for field, part in schema.get("properties", {}).items()
        ]
        summary = f"<code>{escape(name)}</code> {escape(schema.get('description', ''))}"
        parts.append(f"<details id='{escape(name)}'><summary>{summary}</summary>{_table(fields)}</details>")
    return html_response("".join([*parts, "</body></html>"]).encode())


def _operation_html(path: str, method: str, operation: JsonObject) -> Iterator[str]:
    yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
    yield f"<p>{escape(operation['summary'])} <span class='soft'>{escape(operation['description'])}</span></p>"
    if parameters := operation["parameters"]:
        yield _table([(one["name"], f"in the {one['in']}", _type_html(one["schema"])) for one in parameters])
    if "requestBody" in operation:
        body = operation["requestBody"]["content"]["application/json"]
        yield f"<p>Takes {_type_html(body['schema'])}.</p>"
        for example in body.get("examples", {}).values():
            yield f"<pre>{escape(json.dumps(example['value']))}</pre>"
    success, *others = operation["responses"].items()
    content_type, content = next(iter(success[1]["content"].items()))
    yield f"<p>Gives {_type_html(content['schema']) if 'schema' in content else escape(content_type)}.</p>"
    rows = [(status, response["description"], "") for status, response in others]
    yield f"<details><summary>Other statuses</summary>{_table(rows)}</details>"


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
