"""A service that is driven by hand, without a loop: each call is a batch of its own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins
from service_kit import LABELS, D, rows

import superarm as sa
from superarm.explore import Cover
from superarm.journal.changes import AddLabels, DisableLabels, Erase, Freeze, Rollback, SetExplore, Unfreeze
from superarm.journal.errors import JournalUnavailable
from superarm.journal.projector import Projector
from superarm.journal.records import DecisionRecord
from superarm.journal.replay import ReplayResult, replay
from superarm.journal.snapshots import model_bytes
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.commit_queue import Call
from superarm.service.service import Service
from superarm.service.views import changes, decision_details, decision_response, recorded_outcome


class StoredDecision:
    """A decision as the journal has it now."""

    def __init__(self, driver: Driver, id_: str) -> None:
        self.driver, self.id = driver, id_
        self.record = self._read()

    def _read(self) -> DecisionRecord:
        found = DecisionRecord.from_events(self.driver.store.events_by_id([self.id]).get(self.id, ()))
        assert found is not None
        return found

    @property
    def labels(self) -> list[str]:
        return self.record.body.labels

    @property
    def top(self) -> list[str]:
        return self.record.body.top

    @property
    def body(self) -> Any:
        return self.record.body

    @property
    def decision(self) -> Any:
        return self.record.decision.to_decision(self.driver.learner.id)

    @property
    def status(self) -> str:
        return self.record.status

    @property
    def erased(self) -> bool:
        return self.record.decision.x is None

    @property
    def outcome(self) -> dict[str, Any] | None:
        return to_builtins(recorded_outcome(self.driver.service.follower, self._read()))

    def shown(self) -> dict[str, Any]:
        return to_builtins(decision_response(self.record))

    def full(self) -> dict[str, Any]:
        return to_builtins(decision_details(self.driver.service, self.id))


class Driver:
    def __init__(self, service: Service) -> None:
        self.service, self.store = service, service.store

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Driver:
        return cls(Service.open(*arguments, **options))

    def call(self, request: Any) -> Any:
        return self.service.call(request)

    def together(self, requests: Any) -> list[Any]:
        """The results of calls in one batch, with one commit."""
        return [done.result for done in self.service.commit([Call(one) for one in requests])]

    def decide(self, request: DecisionRequest) -> StoredDecision:
        return StoredDecision(self, self.call(request).id)

    def outcome(self, request: OutcomeRequest) -> StoredDecision:
        return StoredDecision(self, self.call(request).id)

    def run(
        self, n: int, prefix: str = "d", *, hits: Callable[[int], bool] | None = None, seed: int = 0
    ) -> list[StoredDecision]:
        """Decide about rows, one by one, with the ids d0, d1, …; answer each at once, if ``hits`` says how."""
        made = []
        for i, x in enumerate(rows(n, seed)):
            made.append(self.decide(DecisionRequest(x, f"{prefix}{i}")))
            if hits is not None:
                self.outcome(OutcomeRequest(made[-1].id, hit=hits(i)))
        return made

    def fill_until_down(self) -> tuple[list[str], JournalUnavailable]:
        """Decide until the journal refuses; return the ids that were acknowledged, and the refusal."""
        kept: list[str] = []
        while True:
            try:
                kept.append(self.decide(DecisionRequest(rows(1)[0], context="x" * 2000)).id)
            except JournalUnavailable as error:
                return kept, error

    def expire(self) -> int:
        before = self.stats.timeouts
        while self.call(self.service.upkeep.write_due_events):
            pass
        return int(self.stats.timeouts - before)

    def snapshot(self) -> None:
        self.call(lambda: self.service.follower.snapshot())

    def find(self, id_: str) -> StoredDecision | None:
        return StoredDecision(self, id_) if self.store.events_by_id([id_]) else None

    def change(self, change: Any) -> None:
        seq = self.call(change)
        refused = self.projector.totals.refusals.get(seq)
        assert refused is None, refused

    def add_labels(self, names: Any) -> None:
        self.change(AddLabels(labels=names))

    def disable_labels(self, names: Any) -> None:
        self.change(DisableLabels(labels=names))

    def freeze(self) -> None:
        self.change(Freeze())

    def unfreeze(self) -> None:
        self.change(Unfreeze())

    def set_explore(self, explore: Any = None, uniform: Any = None) -> None:
        self.change(SetExplore(explore=explore, uniform=uniform))

    def rollback(self, to: int) -> None:
        self.change(Rollback(to=to))

    def erase(self, ids: Any = None, before: float | None = None) -> int:
        seq = self.call(Erase(ids=ids, before=before))
        return self.service.follower.n_erased(seq)

    def recover(self) -> None:
        """As if a moment had gone by; raises if the journal is still down."""
        self.service._retry_at = 0.0
        self.service._recover()
        self.service.check_writable()

    def close(self) -> None:
        self.service.close()

    @property
    def projector(self) -> Any:
        return self.service.follower.projector

    @property
    def learner(self) -> Any:
        return self.projector.learner

    @property
    def stats(self) -> Any:
        return self.projector.totals.stats

    def counts(self) -> dict[str, Any]:
        """A copy of the counts."""
        return dict(self.projector.totals.to_dict()["stats"])

    @property
    def labels(self) -> Any:
        return self.projector.labels

    @property
    def disabled(self) -> frozenset[str]:
        return frozenset(self.projector.totals.settings.disabled)

    @property
    def frozen(self) -> bool:
        return bool(self.projector.totals.settings.frozen)

    @property
    def outage(self) -> Any:
        return self.service.outage

    @property
    def seq(self) -> int:
        return int(self.store.head().seq)

    @property
    def replayed(self) -> int:
        return int(self.service.follower.replayed)

    def kept(self) -> list[int]:
        """The events of the kept snapshots."""
        return [note.seq for note in self.store.snapshots()]

    def changes(self) -> list[dict[str, Any]]:
        return changes(self.service).changes

    def reports(self) -> list[dict[str, Any]]:
        return self.service.follower.projector.reports()

    def problems(self) -> tuple[str, ...]:
        return self.service.problems()

    @property
    def ready(self) -> bool:
        return self.service.ready

    def model_file(self) -> bytes:
        return model_bytes(self.learner)


def superarm(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command, in a process of its own."""
    command = [sys.executable, "-m", "superarm", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def replayed(driver: Driver, *, from_start: bool = False) -> ReplayResult:
    """A replay of the journal behind a driver, which goes on."""
    from superarm.journal.backends import open_store

    with closing(open_store(driver.store.name, read_only=True)) as store:
        return replay(store, from_start=from_start)


def projected(driver: Driver, shadows: Sequence[str] = ()) -> tuple[Projector, Projector]:
    """Project all events of a journal: in blocks, and one by one."""
    whole, single = (Projector(driver.store, driver.store.snapshot(0), shadows) for _ in range(2))
    whole.catch_up()
    for event in driver.store.events():
        single.project([event])
    return whole, single


def bits(learner: Any, part: str = "") -> dict[str, bytes]:
    """Every bit of what a learner has learnt and of what deciding moves in it; or of arrays of that name."""
    return {name: array.tobytes() for name, array in learner.core.state().items() if part in name}


def save_promise(path: Any) -> Any:
    """Save a model of six labels that promises a coverage and has no warm-up; return its path."""
    rule = Cover(coverage=0.9, warm_up=0)
    sa.SetLogit(labels=LABELS, n_features=D, explore=rule, curves=0).save(path)
    return path


def decide_until_label_left_out(driver: Driver) -> StoredDecision:
    """Decide until the rule leaves a label of its top set out; answer all decisions before that one."""
    random = np.random.default_rng(3)
    for _ in range(500):
        x = random.normal(size=D).astype(np.float32)
        made = driver.decide(DecisionRequest(x))
        if len(made.labels) < len(made.top):
            return made
        driver.outcome(OutcomeRequest(made.id, hit=LABELS[int(np.argmax([*x, 0.3]))] in made.labels))
    raise AssertionError("no label was left out")


def sha256_of(driver: Driver) -> str:
    return hashlib.sha256(driver.model_file()).hexdigest()


def sql(driver: Driver, statement: str, values: Any = ()) -> int:
    """A statement that no store would run, on a SQLite journal."""
    with driver.store._transaction() as writer:
        return int(writer.execute(statement, values).rowcount)


def forge(driver: Driver, seq: int, **fields: Any) -> None:
    """Change the body of an event, and all digests after it, as no accident ever would."""
    from orjson import dumps, loads

    from superarm.journal.events import next_chain_digest

    before = driver.store.digest_at(seq - 1)
    for event in list(driver.store.raw_events(seq - 1)):
        if event.seq == seq:
            event.body_json = dumps(loads(event.body_json) | fields)
        before = next_chain_digest(before, event.seq, event.own_digest())
        sql(
            driver,
            "UPDATE events SET body = ?, digest = ? WHERE seq = ?",
            (event.body_json, before, event.seq),
        )
    for kept in driver.kept():
        if kept >= seq:
            forge_snapshot(driver, kept)


def forge_snapshot(driver: Driver, seq: int, model: bytes | None = None) -> None:
    """Give a snapshot another model, or only a new digest."""
    from orjson import dumps, loads

    from superarm.journal.statements import part_digests, snapshot_digest

    text = "SELECT time, totals, made_by, parts FROM snapshots WHERE seq = ?"
    at, totals, made_by, parts = driver.store._select(text, (seq,))[0]
    digests = loads(parts)
    if model is not None:
        digests["model"] = part_digests({"model": model})["model"]
        sql(driver, "DELETE FROM parts WHERE seq = ? AND part = 'model'", (seq,))
        sql(driver, "INSERT INTO parts VALUES (?, 'model', 0, ?)", (seq, model))
    described = dumps(digests).decode()
    own = snapshot_digest(driver.store.digest_at(seq), seq, at, totals, made_by, described)
    sql(driver, "UPDATE snapshots SET parts = ?, digest = ? WHERE seq = ?", (described, own, seq))
