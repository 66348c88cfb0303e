"""The OpenAPI document: made from the routes and from the types they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from superarm.service.http import messages
from superarm.service.http.faults import MEANINGS

if TYPE_CHECKING:
    from superarm.service.http.router import Route

WRITING = (400, 401, 403, 408, 413, 415, 422, 429, 503, 507)
LOOKING = (401, 403, 429, 503)
REFERENCE = "#/components/schemas/{name}"


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The document for all listed routes."""
    types = [kind for route in routes for kind in (route.takes, route.gives) if _is_type(kind)]
    extra = [messages.OutcomeItem, messages.Error]  # named inside of batches
    wanted = list(dict.fromkeys([*types, *extra]))
    schemas, components = msgspec.json.schema_components(wanted, ref_template=REFERENCE)
    # what a Struct cannot say
    components["DecisionRequest"]["oneOf"] = [{"required": ["features"]}, {"required": ["scores"]}]
    schema_of = dict(zip(wanted, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.listed:
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


def _operation(route: Route, schema_of: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    meanings = dict(route.meanings)
    statuses = WRITING if route.method == "POST" else LOOKING if route.roles else (403, 429, 503, 507)
    if route.takes is not None or "{id}" in route.path:
        statuses = (*statuses, 422)
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": (route.run.__doc__ or "").strip(),
        "description": f"Roles: {', '.join(sorted(route.roles))}." if route.roles else "No token is needed.",
        "parameters": [],
        "responses": {"200": _success_response(route, schema_of)},
    }
    for status in sorted({*statuses, *meanings}):
        content = {"application/json": {"schema": schema_of[messages.Error]}}
        operation["responses"][str(status)] = {
            "description": meanings.get(status) or MEANINGS[status],
            "content": content,
        }
    if "{id}" in route.path:
        schema = {"type": "string", "pattern": messages.ID_PATTERN}
        operation["parameters"].append({"name": "id", "in": "path", "required": True, "schema": schema})
    if route.takes is not None and route.method == "GET":
        for name, schema in components[route.takes.__name__]["properties"].items():
            operation["parameters"].append({"name": name, "in": "query", "schema": schema})
    elif route.takes is not None:
        body: dict[str, Any] = {"schema": schema_of[route.takes]}
        if route.examples:
            body["examples"] = {
                f"example-{number}": {"summary": summary, "value": value}
                for number, (summary, value) in enumerate(route.examples, 1)
            }
        operation["requestBody"] = {"required": True, "content": {"application/json": body}}
    return operation


def _success_response(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    if isinstance(route.gives, str):
        return {"description": "A file of that type.", "content": {route.gives: {}}}
    schema = schema_of[route.gives] if route.gives is not None else {"type": "object"}
    return {"description": "CallResult.", "content": {"application/json": {"schema": schema}}}
