"""The OpenAPI document: made from the routes and from the types they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from superarm._types import JsonObject
from superarm.service import messages

if TYPE_CHECKING:
    from superarm.service.http.router import Route

WRITE_STATUSES = (400, 401, 403, 408, 413, 415, 422, 429, 503, 507)
READ_STATUSES = (401, 403, 429, 503)
OPEN_STATUSES = (403, 429, 503, 507)
REFERENCE = "#/components/schemas/{name}"
# of every route; some describe more
STATUSES = {
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


def document(routes: Sequence[Route]) -> JsonObject:
    """Return the OpenAPI document of all documented routes."""
    types = [kind for route in routes for kind in (route.request_type, route.response_type) if _is_type(kind)]
    extra = [messages.OutcomeItem, messages.Error]  # named inside of batches
    wanted = list(dict.fromkeys([*types, *extra]))
    schemas, components = msgspec.json.schema_components(wanted, ref_template=REFERENCE)
    # what a Struct cannot say
    components["DecisionRequestBody"]["oneOf"] = [{"required": ["features"]}, {"required": ["scores"]}]
    schema_of = dict(zip(wanted, schemas, strict=True))
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
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _is_type(kind: Any) -> bool:
    return kind is not None and not isinstance(kind, str)


def _operation(route: Route, schema_of: dict[Any, Any], components: JsonObject) -> JsonObject:
    statuses = {*(READ_STATUSES if route.roles else OPEN_STATUSES), *route.statuses}
    if route.method == "POST":
        statuses |= {*WRITE_STATUSES}
    elif route.request_type is not None or "{id}" in route.path:
        statuses |= {422}
    operation: JsonObject = {
        "operationId": route.name,
        "summary": (route.handler.__doc__ or "").strip(),
        "description": f"Roles: {', '.join(sorted(route.roles))}." if route.roles else "No token is needed.",
        "parameters": [],
        "responses": {"200": _success_response(route, schema_of)},
    }
    for status in sorted(statuses):
        operation["responses"][str(status)] = {
            "description": route.statuses.get(status) or STATUSES[status],
            "content": {"application/json": {"schema": schema_of[messages.Error]}},
        }
    if "{id}" in route.path:
        schema = {"type": "string", "pattern": messages.ID_PATTERN}
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


def _success_response(route: Route, schema_of: dict[Any, Any]) -> JsonObject:
    if isinstance(route.response_type, str):
        return {"description": "A file of that type.", "content": {route.response_type: {}}}
    schema = schema_of[route.response_type] if route.response_type is not None else {"type": "object"}
    return {"description": "The result.", "content": {"application/json": {"schema": schema}}}
