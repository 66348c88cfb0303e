"""Every route: its path, who may use it, what it takes, gives and does.

A new one is a function in here with `@route` over it: the router, the checks and the OpenAPI document
follow from that line and from the types it names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from superarm.errors import SuperarmError
from superarm.service.core.faults import JournalDown, JournalFull, Refused, UnknownDecision
from superarm.service.core.group import Group
from superarm.service.core.journal import OPEN as PENDING
from superarm.service.core.journal import STATES
from superarm.service.core.session import Ask, Entry, Reply
from superarm.service.core.shadows import ShadowReport
from superarm.service.core.stats import AGES
from superarm.service.http import messages as m
from superarm.service.http.admission import DECIDE, LOOK, OPEN, OPERATE, READ
from superarm.service.http.metrics import Metrics
from superarm.service.http.reading import read, to_ask, to_reply
from superarm.service.http.router import Handler, Route
from superarm.service.http.statuses import error_of, status_of
from superarm.service.http.wire import Answer

__all__ = ["ROUTES", "Service", "route"]

ROUTES: list[Route] = []


def route(
    method: str,
    path: str,
    roles: frozenset[str],
    *,
    takes: Any = None,
    gives: Any = None,
    told: dict[int, str] | None = None,
    examples: dict[str, Any] | None = None,
    listed: bool = True,
) -> Callable[[Handler], Handler]:
    """Put a function into the table."""

    def put(run: Handler) -> Handler:
        more = tuple((told or {}).items()), tuple((examples or {}).items())
        ROUTES.append(Route(method, path, roles, run, takes, gives, *more, listed))
        return run

    return put


class Service:
    """What the routes work with: on a file, or on a database that many processes share."""

    def __init__(self, group: Group, upkeep: Any, metrics: Metrics) -> None:
        self.group, self.session, self.metrics, self.upkeep = group, group.session, metrics, upkeep

    # The answers are made in their turn: a later call in the same commit may change the entry.

    def decide_now(self, ask: Ask) -> m.DecisionAnswer:
        return m.DecisionAnswer(**self.session.decide(ask).shown())

    def outcome_now(self, reply: Reply) -> m.OutcomeAnswer:
        entry = self.session.outcome(reply)
        assert entry.outcome is not None
        return m.OutcomeAnswer(entry.place.id, m.Outcome(**entry.outcome))


# ---------------------------------------------------------------- decisions and outcomes


@route(
    "POST",
    "/v1/decisions",
    DECIDE,
    takes=m.DecisionRequest,
    gives=m.DecisionAnswer,
    told={
        409: "The id is taken by another request.",
        410: "The id is that of a decision whose features were erased.",
    },
    examples={
        "named features": {"features": {"age": 41, "colour": "red"}, "id": "order-4711"},
        "a sparse row": {"features": {"indices": [0, 3], "values": [1.0, 0.5]}},
        "a smaller set, and something to be kept with it": {
            "features": {"age": 41},
            "set_size": 2,
            "context": {"page": "/home"},
        },
    },
)
def decisions(service: Service, request: m.DecisionRequest) -> Awaitable[m.DecisionAnswer]:
    """Choose a set of labels to show."""
    return service.group.submit(service.decide_now, to_ask(request, service.session))


@route(
    "POST",
    "/v1/decisions/{id}/outcome",
    DECIDE,
    takes=m.OutcomeRequest,
    gives=m.OutcomeAnswer,
    told={404: "No such decision.", 409: "It has been answered otherwise."},
    examples={"was the right label among them?": {"hit": True}, "it was not": {"hit": False}},
)
def outcomes(service: Service, id_: str, request: m.OutcomeRequest) -> Awaitable[m.OutcomeAnswer]:
    """Say whether the right label was among the shown ones: now, or days later."""
    return service.group.submit(service.outcome_now, to_reply(request, id_, service.session))


ASK, ANSWER = msgspec.json.Decoder(m.DecisionRequest), msgspec.json.Decoder(m.OutcomeItem)


@route(
    "POST",
    "/v1/batch/decisions",
    DECIDE,
    takes=m.DecisionBatch,
    gives=m.DecisionResults,
    examples={"two": {"decisions": [{"features": {"age": 41}}, {"features": {"age": 23}}]}},
)
async def batch_decisions(service: Service, request: m.DecisionBatch) -> m.DecisionResults:
    """Many decisions in one request."""

    def one(item: msgspec.Raw) -> Any:
        return service.group.submit(service.decide_now, to_ask(read(ASK, item), service.session))

    return m.DecisionResults(await _each(one, request.decisions))


@route(
    "POST",
    "/v1/batch/outcomes",
    DECIDE,
    takes=m.OutcomeBatch,
    gives=m.OutcomeResults,
    examples={"two": {"outcomes": [{"id": "order-1", "hit": True}, {"id": "order-2", "hit": False}]}},
)
async def batch_outcomes(service: Service, request: m.OutcomeBatch) -> m.OutcomeResults:
    """Many outcomes in one request."""

    def one(item: msgspec.Raw) -> Any:
        told = read(ANSWER, item)
        return service.group.submit(service.outcome_now, to_reply(told, told.id, service.session))

    return m.OutcomeResults(await _each(one, request.outcomes))


AT_ONCE = 100  # items of a batch between two looks at other callers


async def _each(submit: Callable[[msgspec.Raw], Any], items: list[msgspec.Raw]) -> list[Any]:
    """Submit all items; a result or a refusal for each."""
    waiting: list[Any] = []
    for number, item in enumerate(items, 1):
        try:
            waiting.append(submit(item))
        except SuperarmError as error:
            waiting.append(error)
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    futures = [one for one in waiting if isinstance(one, asyncio.Future)]
    await asyncio.gather(*futures, return_exceptions=True)
    results: list[Any] = []
    for one in waiting:
        failed: Any = one.exception() if isinstance(one, asyncio.Future) else one
        if failed is None:
            results.append(one.result())
        elif status_of(failed) >= 500:
            # a batch of which something could not be written fails as a whole: all of it may be sent again
            raise failed
        else:
            results.append(error_of(failed))
    return results


# ---------------------------------------------------------------- looking


@route("GET", "/v1/decisions/{id}", LOOK, gives=m.DecisionRecord, told={404: "No such decision."})
def decision(service: Service, id_: str) -> Any:
    """All that is known of a decision; `outcome` is null while nobody has answered."""

    def look() -> Any:
        entry = service.session.find(id_)
        if entry is None:
            raise UnknownDecision.must("id", "decision", "that of a decision", id_)
        return entry.full()

    return service.group.look(look)


@route("GET", "/v1/pending", READ, takes=m.PendingQuery, gives=m.Pending)
def pending(service: Service, query: m.PendingQuery) -> Any:
    """Decisions without an answer, oldest first."""
    return service.group.look(lambda: _pending(service.session, query))


def _pending(session: Any, query: m.PendingQuery) -> m.Pending:
    places = session.journal.open_places(limit=query.limit + 1, after=query.after)
    now = session.clock()
    listed = [m.PendingItem(p.id, p.time, max(0.0, now - p.time)) for p in places[: query.limit]]
    following = places[query.limit - 1].seq if len(places) > query.limit else None
    return m.Pending(listed, session.stats.pending, following)


@route("GET", "/v1/info", LOOK, gives=m.Info)
def info(service: Service) -> Any:
    """What the service was made for."""
    return service.group.look(lambda: _info(service.session))


def _info(session: Any) -> m.Info:
    from superarm import __version__

    learner = session.learner
    return m.Info(
        learner=session.journal.meta()["learner"],
        learner_id=learner.id,
        params={name: value for name, value in learner.params.items() if name != "labels"},
        labels=list(session.labels),
        retired=sorted(session.retired),
        frozen=session.frozen,
        n_features=learner.n_features,
        set_size=learner.set_size,
        model_version=session.stats.learnt,
        timeout=session.timeout,
        default_outcome=session.default,
        superarm=__version__,
    )


@route("GET", "/v1/model", READ, gives="application/octet-stream")
async def model(service: Service) -> Answer:
    """The model as it is now, a file for superarm.load: all that it has learnt is on the disk."""
    data = await service.group.model_file()
    return Answer(200, data, "application/octet-stream")


@route("GET", "/v1/stats", READ)
def stats(service: Service) -> Any:
    """All that the dashboard shows."""
    return service.group.look(lambda: _stats(service))


def _stats(service: Service) -> Any:
    session, totals = service.session, service.session.stats
    oldest = session.journal.open_places(limit=1)
    now, health = session.clock(), session.health()
    return {
        "now": now,
        **{name: getattr(totals, name) for name in (*totals.COUNTS, "pending", "floor")},
        "oldest_pending": max(0.0, now - oldest[0].time) if oldest else None,
        "mean_age": totals.age_sum / max(1, sum(totals.ages)),
        "ages": {"below": [*AGES, None], "count": totals.ages},
        "labels": {
            "name": totals.labels,
            "shown": totals.shown,
            "answered": totals.answered,
            "hit": totals.hit,
        },
        "curve": {"start": totals.start, "width": totals.width, "slots": totals.slots},
        "recent": [_brief(entry) for entry in session.recent(12)],
        "learner": session.journal.meta()["learner"],
        "retired": sorted(session.retired),
        "frozen": session.frozen,
        "shadows": [_shadow(one) for one in session.shadows],
        "trouble": health.trouble,
        "journal": {"events": health.events, "down": health.down, "snapshot_lag": health.snapshot_lag},
        "latency": service.metrics.quantiles(),
        "processes": getattr(session, "processes", None),
    }


def _brief(entry: Entry) -> dict[str, Any]:
    outcome = entry.outcome
    return {
        "id": entry.place.id,
        "time": entry.place.time,
        "labels": entry.body["labels"],
        "explored": set(entry.body["labels"]) != set(entry.body["top"]),
        "propensity": entry.decision.propensity,
        "state": STATES[entry.place.state],
        "hit": None if outcome is None or entry.place.state == PENDING else outcome["hit"],
    }


def _shadow(report: ShadowReport) -> m.Shadow:
    rate, low, high = (None if value != value else value for value in (report.rate, report.low, report.high))
    return m.Shadow(report.spec, rate, low, high, report.rows, report.learnt, report.problem)


@route("GET", "/v1/shadows", READ, gives=m.Shadows)
def shadows(service: Service) -> Any:
    """Estimated hit rates: of the model itself, then of each shadow."""
    return service.group.look(lambda: m.Shadows([_shadow(one) for one in service.session.shadows]))


@route("GET", "/v1/snapshots", READ, gives=m.Snapshots)
def snapshots(service: Service) -> Any:
    """The kept snapshots, oldest first."""
    return service.group.look(lambda: m.Snapshots([m.Snapshot(**one) for one in service.session.snapshots()]))


# ---------------------------------------------------------------- changes


@route("GET", "/v1/changes", READ, gives=m.Changes)
def changes(service: Service) -> Any:
    """What operators have changed, oldest first."""
    return service.group.look(lambda: m.Changes(service.session.changes()))


@route(
    "POST",
    "/v1/changes",
    OPERATE,
    takes=m.AnyChange,
    gives=m.Changed,
    told={404: "No such decision."},
    examples={"stop learning": {"what": "freeze"}, "learn again": {"what": "resume"}},
)
async def change(service: Service, request: Any) -> m.Changed:
    """Change something while it runs; each change is an event of the journal."""
    session, erased = service.session, 0
    if isinstance(request, m.Erase):
        if (request.ids is None) == (request.before is None):
            raise Refused.must("ids", "change", "given, or before in its place, and not both", request.ids)
        erased = await service.upkeep.erase(request.ids, request.before)
    else:
        await service.group.on_disk(CHANGES[type(request)], (session, request))
    told = list(session.labels), sorted(session.retired), session.frozen
    return m.Changed(type(request).__struct_config__.tag, session.seq, *told, erased)


# each may load a model, so they run beside the loop
CHANGES: dict[type[Any], Callable[[Any], None]] = {
    m.AddLabels: lambda given: given[0].add_labels(given[1].labels),
    m.RetireLabels: lambda given: given[0].retire_labels(given[1].labels),
    m.Freeze: lambda given: given[0].freeze(),
    m.Resume: lambda given: given[0].resume(),
    m.SetExplore: lambda given: given[0].set_explore(given[1].explore, given[1].uniform),
    m.GoBack: lambda given: given[0].go_back(given[1].to),
}


# ---------------------------------------------------------------- for machines that watch


@route("GET", "/health", OPEN, gives=m.Status)
def health(service: Service) -> m.Status:
    """Whether the process is alive."""
    return m.Status("ok")


@route("GET", "/ready", OPEN, gives=m.Status)
def ready(service: Service) -> m.Status:
    """Whether it can take decisions, and what is wrong even if it can."""
    found = service.session.health()
    if not found.ready:
        raise (JournalFull if found.full else JournalDown)(found.trouble[0])
    return m.Status("ready", list(found.trouble))


@route("GET", "/metrics", READ, gives="text/plain")
def metrics(service: Service) -> Any:
    """Numbers for Prometheus."""

    def look() -> Answer:
        text = service.metrics.text(service.group)
        return Answer(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    return service.group.look(look)
