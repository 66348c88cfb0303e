"""The HTTP application: FastAPI for the routes' documents, gate.py before it, the session behind it."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any

from superarm.errors import MissingExtra
from superarm.service.core.fastjson import dumps
from superarm.service.core.group import Group
from superarm.service.core.session import Session
from superarm.service.core.upkeep import Upkeep
from superarm.service.http.gate import Gate
from superarm.service.http.metrics import Metrics
from superarm.service.http.routes import Answer, Routes, _error

try:
    from fastapi import FastAPI, Path, Query, Request, Response
    from fastapi.exceptions import RequestValidationError
    from pydantic.json_schema import models_json_schema
    from starlette.exceptions import HTTPException

    from superarm.service.http import schemas
except ImportError as error:
    raise MissingExtra("the service needs FastAPI: pip install 'superarm[serve]'") from error

__all__ = ["make_app"]

log = logging.getLogger("superarm.service")

REFUSALS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The service has no token, and is not meant for this host name.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "A field is not what it must be; `field` names it.",
    429: "Too many requests.",
    503: "The journal cannot be written at the moment.",
    507: "The journal is full.",
}
PAGE = files("superarm.service.http").joinpath("dashboard.html").read_bytes()
_script = PAGE.partition(b"<script>")[2].partition(b"</script>")[0]
_digest = b64encode(sha256(_script).digest()).decode()
# no script but the page's own, whatever a label may be called
CSP = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_digest}'; connect-src 'self'"


def make_app(open_session: Callable[[], Session], **limits: Any) -> Gate:
    """The ASGI application; the session is opened when it starts, and closed when it ends.

    Args:
        open_session: gives the session.
        limits: ``token``, ``max_body`` in bytes and ``rate`` (requests a second and address), see Gate.
    """
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        session = open_session()
        group = Group(session)
        app.state.routes = gate.routes = Routes(group, metrics)
        upkeep = asyncio.create_task(Upkeep(group).run())
        log.info("ready", extra={"event_no": session.journal.seq, "replayed": session.replayed})
        if session.health().trouble:
            log.warning("trouble", extra={"found": session.health().trouble})
        try:
            yield
        finally:
            upkeep.cancel()
            await asyncio.gather(upkeep, return_exceptions=True)
            await group.close()
            session.close()
            log.info("closed", extra={"event_no": session.journal.seq})

    api = FastAPI(
        title="superarm",
        version="1",
        summary="Shows sets of labels, takes answers whenever they come, and loses nothing.",
        lifespan=lifespan,
        redoc_url=None,
    )
    gate = Gate(api, metrics, **limits)
    _add_routes(api)
    return gate


# ---------------------------------------------------------------- routes


def _response(answer: Answer) -> Response:
    headers = {"retry-after": "1"} if answer.status in (503, 507) else None
    return Response(answer.body, answer.status, headers, answer.kind)


def _refusals(*statuses: int, **more: str) -> dict[int | str, dict[str, Any]]:
    told = {status: REFUSALS[status] for status in statuses} | {int(k[1:]): text for k, text in more.items()}
    return {status: {"model": schemas.Error, "description": text} for status, text in told.items()}


WRITING = (400, 401, 403, 408, 413, 415, 422, 429, 503, 507)
LOOKING = (401, 403, 422, 429)


def _takes(model: type[Any]) -> dict[str, Any]:
    name = model.__name__
    reference = {"$ref": f"#/components/schemas/{name}"}
    content = {"application/json": {"schema": reference, "examples": schemas.EXAMPLES[name]}}
    return {"requestBody": {"required": True, "content": content}}


Name = Annotated[str, Path(description="The id of a decision.", pattern=r"^[A-Za-z0-9_.:\-]{1,128}$")]


def _add_routes(api: FastAPI) -> None:
    def routes() -> Routes:
        return api.state.routes  # type: ignore[no-any-return]

    @api.post(
        "/v1/decisions",
        response_model=schemas.DecisionAnswer,
        responses=_refusals(*WRITING, _409="The id is taken by another request."),
        openapi_extra=_takes(schemas.DecisionRequest),
    )
    async def decide(request: Request) -> Response:
        """Choose a set of labels to show."""
        return _response(await routes().decide(await request.body()))

    @api.post(
        "/v1/decisions/{id}/outcome",
        response_model=schemas.OutcomeAnswer,
        responses=_refusals(*WRITING, _404="No such decision.", _409="It has been answered otherwise."),
        openapi_extra=_takes(schemas.OutcomeRequest),
    )
    async def outcome(id: Name, request: Request) -> Response:
        """Say whether the right label was among the shown ones: now, or days later."""
        return _response(await routes().outcome(id, await request.body()))

    @api.post(
        "/v1/batch/decisions",
        response_model=schemas.DecisionResults,
        responses=_refusals(*WRITING),
        openapi_extra=_takes(schemas.DecisionBatch),
    )
    async def decide_batch(request: Request) -> Response:
        """Many decisions in one request."""
        return _response(await routes().decide_batch(await request.body()))

    @api.post(
        "/v1/batch/outcomes",
        response_model=schemas.OutcomeResults,
        responses=_refusals(*WRITING),
        openapi_extra=_takes(schemas.OutcomeBatch),
    )
    async def outcome_batch(request: Request) -> Response:
        """Many outcomes in one request."""
        return _response(await routes().outcome_batch(await request.body()))

    @api.get(
        "/v1/decisions/{id}",
        response_model=schemas.DecisionRecord,
        responses=_refusals(*LOOKING, _404="No such decision."),
    )
    async def decision(id: Name) -> Response:
        """All that is known of a decision; `outcome` is null while nobody has answered."""
        return _response(routes().decision(id))

    @api.get("/v1/pending", response_model=schemas.Pending, responses=_refusals(*LOOKING))
    async def pending(
        limit: Annotated[int, Query(ge=1, le=1000)] = 100, after: Annotated[int, Query(ge=0, lt=2**63)] = 0
    ) -> Response:
        """Decisions without an answer, oldest first."""
        return _response(routes().pending(limit, after))

    @api.get("/v1/info", response_model=schemas.Info, responses=_refusals(401, 403, 429))
    async def info() -> Response:
        """What the service was made for."""
        return _response(routes().info())

    @api.get("/v1/stats", responses=_refusals(401, 403, 429))
    async def stats() -> Response:
        """All that the dashboard shows."""
        return _response(routes().stats())

    binary: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/octet-stream": {}}, "description": "A file for superarm.load."}
    }

    @api.get("/v1/model", response_class=Response, responses={**binary, **_refusals(401, 403, 429)})
    async def model() -> Response:
        """The model as it is now."""
        return _response(await routes().model())

    @api.get("/health", responses=_refusals(403, 429))
    async def health() -> Response:
        """Whether the process is alive."""
        return _response(routes().health())

    @api.get("/ready", responses=_refusals(403, 429, 503, 507))
    async def ready() -> Response:
        """Whether it can take decisions."""
        return _response(routes().ready())

    text: dict[int | str, dict[str, Any]] = {
        200: {"content": {"text/plain": {}}, "description": "Prometheus' text format."}
    }

    @api.get("/metrics", response_class=Response, responses={**text, **_refusals(401, 403, 429)})
    async def metrics() -> Response:
        """Numbers for Prometheus."""
        return _response(routes().metrics_text())

    @api.get("/", include_in_schema=False)
    async def dashboard() -> Response:
        return Response(PAGE, 200, {"content-security-policy": CSP}, "text/html; charset=utf-8")

    @api.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> Response:
        return Response(status_code=204)

    @api.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        body = dumps({"error": _error(error.status_code, None, str(error.detail))})
        return Response(body, error.status_code, error.headers, "application/json")

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = str(first["loc"][-1])
        message = f"{field} of request: {first['msg']}, got {str(first.get('input'))[:80]!r}"
        return Response(dumps({"error": _error(422, field, message)}), 422, None, "application/json")

    made: dict[str, Any] = FastAPI.openapi(api)
    wanted = [(model, "validation") for model in schemas.REQUESTS.values()]
    _, definitions = models_json_schema(wanted, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    for name, schema in definitions["$defs"].items():
        made["components"]["schemas"].setdefault(name, schema)
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{}, {"token": []}]
    for path in made["paths"].values():  # FastAPI's own error format never comes out of here
        for operation in path.values():
            schema = str(operation["responses"].get("422"))
            if "HTTPValidationError" in schema:
                del operation["responses"]["422"]
    api.openapi_schema = made
