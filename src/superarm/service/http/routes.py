"""What each route does: bytes in, a status and bytes out. No framework in here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from superarm.errors import SuperarmError
from superarm.service.core.fastjson import dumps, loads
from superarm.service.core.faults import JournalDown, UnknownDecision
from superarm.service.core.group import Group
from superarm.service.core.journal import OPEN, STATES
from superarm.service.core.session import Entry
from superarm.service.core.stats import AGES
from superarm.service.http.metrics import Metrics
from superarm.service.http.refusals import status_of
from superarm.service.http.requests import Shape, items, parse_json, read_ask, read_reply

__all__ = ["Answer", "Routes", "refusal"]


class Answer(NamedTuple):
    status: int
    body: bytes
    kind: str = "application/json"


def refusal(error: Exception) -> Answer:
    """The answer that says what was wrong."""
    if not isinstance(error, SuperarmError):
        raise error
    status, field = status_of(error), error.field
    return Answer(status, dumps({"error": _error(status, field, str(error))}))


def _error(status: int, field: str | None, message: str) -> dict[str, Any]:
    return {"status": status, "field": field, "message": message}


class Routes:
    """The service's answers."""

    def __init__(self, group: Group, metrics: Metrics) -> None:
        self.group, self.session, self.metrics = group, group.session, metrics
        self.shape = Shape(self.session.learner.n_features, self.session.labels)

    # ------------------------------------------------------------ the hot two, and their batches

    async def decide(self, body: bytes) -> Answer:
        try:
            ask = read_ask(parse_json(body), self.shape)
            shown = await self.group.submit(self._decide, ask)
        except SuperarmError as error:
            return refusal(error)
        return Answer(200, dumps(shown))

    async def outcome(self, id_: str, body: bytes) -> Answer:
        try:
            reply = read_reply(parse_json(body), id_, self.shape)
            taken = await self.group.submit(self._outcome, reply)
        except SuperarmError as error:
            return refusal(error)
        return Answer(200, dumps(taken))

    async def decide_batch(self, body: bytes) -> Answer:
        return await self._batch(body, "decisions", self._decide, lambda item: read_ask(item, self.shape))

    async def outcome_batch(self, body: bytes) -> Answer:
        return await self._batch(
            body, "outcomes", self._outcome, lambda item: read_reply(item, None, self.shape)
        )

    # The answers are made in their turn: a later call in the same batch may change the entry.

    def _decide(self, ask: Any) -> dict[str, Any]:
        return self.session.decide(ask).shown()

    def _outcome(self, reply: Any) -> dict[str, Any]:
        entry = self.session.outcome(reply)
        return {"id": entry.place.id, "outcome": entry.outcome}

    async def _batch(
        self, body: bytes, name: str, method: Callable[[Any], Any], read: Callable[[Any], Any]
    ) -> Answer:
        try:
            given = items(parse_json(body), name)
        except SuperarmError as error:
            return refusal(error)
        waiting: list[Any] = []
        for item in given:
            try:
                waiting.append(self.group.submit(method, read(item)))
            except SuperarmError as error:
                waiting.append(error)
        futures = [one for one in waiting if isinstance(one, asyncio.Future)]
        await asyncio.gather(*futures, return_exceptions=True)
        results: list[Any] = []
        down: JournalDown | None = None
        for one in waiting:
            failed: Any = one.exception() if isinstance(one, asyncio.Future) else one
            if failed is None:
                results.append(one.result())
            else:
                down = failed if isinstance(failed, JournalDown) else down
                results.append(loads(refusal(failed).body))
        # a batch of which something could not be written fails as a whole: all of it may be sent again
        return refusal(down) if down else Answer(200, dumps({"results": results}))

    # ------------------------------------------------------------ looking

    def decision(self, id_: str) -> Answer:
        entry = self.session.find(id_)
        if entry is None:
            return refusal(UnknownDecision(f"id of decision must be known, got {id_!r}", field="id"))
        return Answer(200, dumps(entry.full()))

    def pending(self, limit: int, after: int) -> Answer:
        places = self.session.journal.open_places(limit=limit + 1, after=after)
        listed = [
            {"id": place.id, "time": place.time, "age": max(0.0, self.session.clock() - place.time)}
            for place in places[:limit]
        ]
        following = places[limit - 1].seq if len(places) > limit else None
        return Answer(200, dumps({"pending": listed, "count": self.session.stats.pending, "next": following}))

    def info(self) -> Answer:
        session, learner = self.session, self.session.learner
        from superarm import __version__

        told = {
            "learner": session.journal.meta()["learner"],
            "learner_id": learner.id,
            "labels": session.labels,
            "n_features": learner.n_features,
            "set_size": learner.set_size,
            "model_version": session.stats.learnt,
            "timeout": session.timeout,
            "default_outcome": session.default,
            "superarm": __version__,
        }
        return Answer(200, dumps(told))

    def health(self) -> Answer:
        return Answer(200, b'{"status":"ok"}')

    def ready(self) -> Answer:
        if self.session.down is not None:
            return refusal(self.session.down)
        return Answer(200, b'{"status":"ready"}')

    def metrics_text(self) -> Answer:
        return Answer(200, self.metrics.text(self.group).encode(), "text/plain; version=0.0.4")

    async def model(self) -> Answer:
        """The model file as of now: all that it has learnt is on the disk."""
        try:
            data = await self.group.submit(lambda _: self.session.model_file(), None)
        except SuperarmError as error:
            return refusal(error)
        return Answer(200, data, "application/octet-stream")

    def stats(self) -> Answer:
        """All that the dashboard shows."""
        session, stats = self.session, self.session.stats
        oldest = session.journal.open_places(limit=1)
        now = session.clock()
        told = {
            "now": now,
            **{name: getattr(stats, name) for name in (*stats.COUNTS, "pending", "floor")},
            "oldest_pending": max(0.0, now - oldest[0].time) if oldest else None,
            "mean_age": stats.age_sum / max(1, sum(stats.ages)),
            "ages": {"below": [*AGES, None], "count": stats.ages},
            "labels": {
                "name": stats.labels,
                "shown": stats.shown,
                "answered": stats.answered,
                "hit": stats.hit,
            },
            "curve": {"start": stats.start, "width": stats.width, "slots": stats.slots},
            "recent": [self._brief(entry) for entry in self._recent(12)],
            "learner": session.journal.meta()["learner"],
            "journal": {"events": session.journal.seq, "down": str(session.down) if session.down else None},
            "latency": self.metrics.quantiles(),
        }
        return Answer(200, dumps(told))

    def _recent(self, limit: int) -> list[Entry]:
        session = self.session
        found = [session.journal.place(event.id) for event in session.journal.recent(limit)]
        return [session.entry(place) for place in found if place is not None]

    def _brief(self, entry: Entry) -> dict[str, Any]:
        outcome = entry.outcome
        return {
            "id": entry.place.id,
            "time": entry.place.time,
            "labels": entry.body["labels"],
            "explored": set(entry.body["labels"]) != set(entry.body["top"]),
            "propensity": entry.decision.propensity,
            "state": STATES[entry.place.state],
            "hit": None if outcome is None or entry.place.state == OPEN else outcome["hit"],
        }
