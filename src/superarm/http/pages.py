"""Pages for people: HTML with the script and the style that all pages share, and which nothing else can enter."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from superarm.http.request import Response


def favicon(context: object) -> Response:
    """There is no icon."""
    return Response(204)


@cache
def load_page(package: str, name: str, *, pictures: bool = False) -> Response:
    """Return a page of a package, with the style and script that all pages share.

    ``pictures``: the script shows pictures that it has fetched.
    """
    page = files(package).joinpath(name).read_bytes()
    for shared in ("shared.css", "shared.js"):
        text = files("superarm.http").joinpath(shared).read_bytes()
        page = page.replace(f"/* {shared} */\n".encode(), text)
    script = page.partition(b"<script>")[2].partition(b"</script>")[0]
    # no script but the page's own, whatever a label may be called
    csp = f"script-src 'sha256-{b64encode(sha256(script).digest()).decode()}'; connect-src 'self'"
    return html_response(page, csp + ("; img-src blob:" if pictures else ""))


def html_response(page: bytes, csp: str = "") -> Response:
    """Return a page that may load nothing, and run no script, but what ``csp`` allows."""
    always = (
        "default-src 'none'; style-src 'unsafe-inline'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    headers = ((b"x-frame-options", b"DENY"), (b"referrer-policy", b"no-referrer"))
    return Response(200, page, b"text/html; charset=utf-8", headers, f"{always}; {csp}".encode())
