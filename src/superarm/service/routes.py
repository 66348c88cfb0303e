"""Every route: its path, its roles, its request and its response.

A new one is a function in here with `@route` over it: the router, the checks and the OpenAPI document
follow from that line and from the types it names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from superarm._types import JsonObject
from superarm.errors import SuperarmError
from superarm.http.access import ANY_ROLE, DECIDE, OPEN, OPERATE, READ, Tokens
from superarm.http.decoding import decode_body
from superarm.http.http_errors import HttpError, error_body, status_of
from superarm.http.pages import favicon, load_page
from superarm.http.request import Response
from superarm.http.router import Endpoint, Route
from superarm.journal.changes import AnyOperatorRequest
from superarm.journal.errors import JournalError, JournalUnavailable
from superarm.service import Service, views
from superarm.service.messages import (
    ChangeResponse,
    Changes,
    DecisionBatch,
    DecisionRecordBody,
    DecisionRequestBody,
    DecisionResponse,
    DecisionResults,
    Info,
    OutcomeBatch,
    OutcomeRequest,
    OutcomeRequestBody,
    OutcomeResponse,
    OutcomeResults,
    PendingBody,
    PendingQuery,
    Snapshots,
    Status,
)
from superarm.service.metrics import RequestMetrics, service_metrics, storage_metrics
from superarm.service.openapi import documentation_page, openapi_document
from superarm.service.request_errors import UnknownDecision
from superarm.service.requests import DecisionRequest, to_decision_request

ROUTES: list[Route] = []
METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
MAX_DOWNLOADS = 2  # models that are made and sent at the same time: each may take a hundred megabytes
YIELD_EVERY = 100  # items of a batch, between which other requests have their turn


def route(method: str, path: str, roles: frozenset[str], **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Put a function into the table; the options are those of `Route`."""

    def add(endpoint: Endpoint) -> Endpoint:
        ROUTES.append(Route(method, path, roles, endpoint, **options))
        return endpoint

    return add


@dataclass(frozen=True)
class Context:
    """The context of the routes: the service, its tokens, and the metrics of this process."""

    service: Service
    metrics: RequestMetrics
    tokens: Tokens
    downloads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_DOWNLOADS))

    def problems(self, *, for_strangers: bool = False) -> list[str]:
        """Return what is wrong, worst first, one sentence each; for strangers, without the model's figures."""
        token_problems = [] if self.tokens.problem is None else [self.tokens.problem]
        return [*token_problems, *self.service.problems(for_strangers=for_strangers)]


# ---------------------------------------------------------------- decisions and outcomes


@route(
    "POST",
    "/v1/decisions",
    DECIDE,
    statuses={
        409: "The id is taken by another request.",
        410: "The id is that of a decision whose features were erased.",
    },
    examples={
        "named features": {"features": {"age": 41, "city": "Rome", "income": None}, "id": "order-4711"},
        "a sparse row": {"features": {"indices": [0, 3], "values": [1.0, 0.5]}},
        "scores of your own model": {"scores": {"login": -0.2, "billing": -1.9, "sales": -4.0}},
        "a smaller set, and something to be kept with it": {
            "features": {"age": 41},
            "set_size": 2,
            "context": {"page": "/home"},
        },
    },
)
async def decisions(context: Context, request: DecisionRequestBody) -> DecisionResponse:
    """Choose a set of labels to show."""
    return await context.service.decide(to_decision_request(request, context.service.projector.learner))


@route(
    "POST",
    "/v1/decisions/{id}/outcome",
    DECIDE,
    statuses={404: "No such decision.", 409: "It has another outcome."},
    examples={"was the right label among them?": {"hit": True}, "it was not": {"hit": False}},
)
async def outcomes(context: Context, id_: str, request: OutcomeRequestBody) -> OutcomeResponse:
    """Report whether the right label was among the shown ones: now, or days later."""
    return await context.service.outcome(OutcomeRequest(id_, request.hit, request.label))


DECISION_DECODER = msgspec.json.Decoder(DecisionRequestBody)
OUTCOME_DECODER = msgspec.json.Decoder(OutcomeRequest)


@route(
    "POST",
    "/v1/batch/decisions",
    DECIDE,
    examples={"two": {"decisions": [{"features": {"age": 41}}, {"features": {"age": 23}}]}},
)
async def batch_decisions(context: Context, request: DecisionBatch) -> DecisionResults:
    """Many decisions in one request."""

    def to_request(item: msgspec.Raw) -> DecisionRequest:
        return to_decision_request(decode_body(DECISION_DECODER, item), context.service.projector.learner)

    return DecisionResults(await _submit_each(context.service, to_request, request.decisions))


@route(
    "POST",
    "/v1/batch/outcomes",
    DECIDE,
    examples={"two": {"outcomes": [{"id": "order-1", "hit": True}, {"id": "order-2", "hit": False}]}},
)
async def batch_outcomes(context: Context, request: OutcomeBatch) -> OutcomeResults:
    """Many outcomes in one request."""

    def to_request(item: msgspec.Raw) -> OutcomeRequest:
        return decode_body(OUTCOME_DECODER, item)

    return OutcomeResults(await _submit_each(context.service, to_request, request.outcomes))


async def _submit_each(
    service: Service, to_request: Callable[[msgspec.Raw], object], items: list[msgspec.Raw]
) -> list[Any]:
    """Submit all items; return a result or an error for each."""
    futures: list[asyncio.Future[Any]] = []
    for number, item in enumerate(items, 1):
        try:
            futures.append(service.submit(to_request(item)))
        except SuperarmError as error:
            futures.append(asyncio.get_running_loop().create_future())
            futures[-1].set_exception(error)
        if number % YIELD_EVERY == 0:
            await asyncio.sleep(0)
    results = await asyncio.gather(*futures, return_exceptions=True)
    for result in results:
        # a batch of which something could not be written fails as a whole: all of it may be sent again
        if isinstance(result, Exception) and status_of(result) >= 500:
            raise result
    return [error_body(result) if isinstance(result, Exception) else result for result in results]


# ---------------------------------------------------------------- views


@route("GET", "/v1/decisions/{id}", ANY_ROLE, statuses={404: "No such decision."})
async def decision(context: Context, id_: str) -> DecisionRecordBody:
    """All that is known of a decision; `outcome` is null while there is none."""
    await context.service.catch_up()
    record = await context.service.read(views.decision_details, id_)
    if record is None:
        raise UnknownDecision.must("id", "request", "that of a decision", id_)
    return record


@route("GET", "/v1/pending", READ)
async def pending(context: Context, query: PendingQuery) -> PendingBody:
    """Decisions without an outcome, oldest first."""
    return await context.service.read(views.pending, query.limit, query.after)


@route("GET", "/v1/info", ANY_ROLE)
def info(context: Context) -> Info:
    """The learner, labels and options of the service."""
    return views.info(context.service)


@route("GET", "/v1/model", READ, content_type="application/octet-stream")
async def model(context: Context) -> Response:
    """The model as it is now, a file for superarm.load: all that it has learnt is on the disk."""
    await context.downloads.acquire()
    try:
        data = await context.service.model_file()
    except BaseException:
        context.downloads.release()
        raise
    return Response(200, data, b"application/octet-stream", on_sent=context.downloads.release)


@route("GET", "/v1/stats", READ)
async def stats(context: Context) -> JsonObject:
    """All that the dashboard shows."""
    totals = await context.service.read(views.stats)
    return {**totals, "trouble": context.problems(), "latency": context.metrics.quantiles()}


@route("GET", "/v1/snapshots", READ)
async def snapshots(context: Context) -> Snapshots:
    """The kept snapshots, oldest first."""
    return await context.service.read(views.snapshots)


# ---------------------------------------------------------------- changes


@route("GET", "/v1/changes", READ)
async def changes(context: Context) -> Changes:
    """Changes by operators, oldest first."""
    return await context.service.read(views.changes)


@route(
    "POST",
    "/v1/changes",
    OPERATE,
    statuses={202: "Taken, and not finished: it is tried again.", 404: "No such decision."},
    examples={"stop learning": {"what": "freeze"}, "learn again": {"what": "unfreeze"}},
)
async def change(context: Context, request: AnyOperatorRequest) -> ChangeResponse | Response:
    """Change something while it runs; each change is an event of the journal."""
    body = await context.service.change(request)
    return body if body.finished else Response(202, msgspec.json.encode(body))


# ---------------------------------------------------------------- monitoring


@route("GET", "/health", OPEN)
def health(context: Context) -> Status:
    """Whether the process is alive."""
    return Status("ok")


@route("GET", "/ready", OPEN)
def ready(context: Context) -> Status:
    """Whether it can take decisions, and what is wrong even if it can."""
    service, problems = context.service, context.problems(for_strangers=context.tokens.required)
    if context.tokens.problem is not None:
        raise HttpError(context.tokens.problem, status=503)
    service.check_writable()
    if not service.ready:
        raise JournalUnavailable(problems[0])
    return Status("ready", problems)


@route("GET", "/metrics", READ, content_type="text/plain")
async def metrics(context: Context) -> Response:
    """Numbers for Prometheus."""
    measured = list(service_metrics(context.service))
    with suppress(JournalError):  # what cannot be read now has no sample
        measured += await context.service.read(storage_metrics)
    return Response(200, context.metrics.text(measured), METRICS_TYPE)


def token_file_metrics(context: Context) -> Response:
    """Return the one metric that needs no token: the token file is missing or wrong, so that none is accepted."""
    text = b"# TYPE superarm_token_file_ok gauge\nsuperarm_token_file_ok 0.0\n"
    return Response(200, text, METRICS_TYPE)


TOKEN_FILE_METRICS = Route("GET", "/metrics", OPEN, token_file_metrics)  # in place of the route of that path


# ---------------------------------------------------------------- pages


@route("GET", "/", OPEN, documented=False)
def dashboard(context: Context) -> Response:
    """The dashboard."""
    return load_page("superarm.service", "dashboard.html")


@route("GET", "/openapi.json", OPEN, documented=False)
def openapi(context: Context) -> Response:
    """The OpenAPI document."""
    return _openapi_pages()["json"]


@route("GET", "/docs", OPEN, documented=False)
def docs(context: Context) -> Response:
    """The OpenAPI document, for people."""
    return _openapi_pages()["html"]


route("GET", "/favicon.ico", OPEN, documented=False)(favicon)


@cache
def _openapi_pages() -> dict[str, Response]:
    """Return the same bytes for everybody: what strangers do not read takes no memory."""
    document = openapi_document(ROUTES)
    return {"json": Response(200, msgspec.json.encode(document)), "html": documentation_page(document)}
