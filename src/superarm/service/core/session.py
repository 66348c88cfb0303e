"""A learner behind a journal. No HTTP in here.

Every call that changes something also writes its event into the transaction under way; nothing may
be acknowledged before `commit` has returned. The order of the events is the order of the learner's
calls, so replaying them gives the same bits. Whatever has moved the learner and did not reach the
journal is taken back: the session is down (`fail`) until `recover` has loaded the journal's own state.

The room, beside this file: what moves the model (model.py, changes.py, shadows.py), where it is kept
(journal.py, sqlite.py, archive.py, snapshots.py), what an operator does (operating.py, erasing.py, verify.py,
backup.py, replay.py, health.py), and taking turns (group.py, upkeep.py).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superarm.decision import Decision
from superarm.errors import InvalidInput, SuperarmError, WeightsOverflow
from superarm.rows import SparseRow, as_row, densify, sparsify
from superarm.service.core import erasing, operating
from superarm.service.core.clocks import Ages
from superarm.service.core.compare import BITS, ODDS, SETS
from superarm.service.core.entries import Ask, Cache, Entry, Reply, context_bytes, outcome_of
from superarm.service.core.events import DECISION, OUTCOME, TIMEOUT, decision_body, pack_row, to_decision
from superarm.service.core.fastjson import dumps, loads
from superarm.service.core.faults import (
    Conflict,
    Erased,
    JournalDamaged,
    JournalDown,
    JournalForeign,
    JournalFull,
    Refused,
    UnknownDecision,
)
from superarm.service.core.founding import check, found
from superarm.service.core.health import Health
from superarm.service.core.journal import ANSWERED, EXPIRED, LATE, OPEN, Place, open_journal
from superarm.service.core.model import Model, load_class
from superarm.service.core.shadows import Shadow, ShadowReport, make_shadows, rebuild
from superarm.service.core.snapshots import SnapshotJob, learner_from, model_bytes

__all__ = ["Ask", "Entry", "Reply", "Session"]

log = logging.getLogger("superarm.service")

EXPIRED_AT_ONCE = 500
RETRY_SECONDS = 1.0
INDEX_EVERY = 2_000  # events


class Session:
    """One model and its journal.

    Use `Session.open`. A session belongs to one thread at a time; the process that has it is the
    only one that may write the journal.

    Attributes:
        learner, stats: the model and its totals, as of the last call (committed or not).
        labels, known, retired, frozen: what may be shown; they change while it runs.
        down: why nothing can be written at the moment, or None.
        founded: whether `open` has made a new journal.
    """

    def __init__(
        self,
        journal: Any,
        *,
        learner: str | None = None,
        timeout: float | None = None,
        default: bool | None = None,
        snapshot_every: int = 50_000,
        keep_snapshots: int = 3,
        retain: float | None = None,
        shadows: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] | None = None,
    ) -> None:
        of = "superarm serve"
        for name, value in (("timeout", timeout), ("retain", retain)):
            if value is not None and not value > 0.0:
                raise InvalidInput.must(f"--{name}", of, "more than 0 seconds", value)
        began = time.perf_counter()
        load_class(journal.meta(), learner)
        self.journal, self.timeout, self.default, self.clock = journal, timeout, default, clock
        self.snapshot_every, self.keep_snapshots, self.retain = snapshot_every, keep_snapshots, retain
        self.down: JournalDown | None = None
        self.founded = False
        self.upkeep_failures, self.upkeep_error = 0, None  # counted by Upkeep
        self._shadow_specs = tuple(shadows)
        self._retry_at = 0.0
        self._commit_began: float | None = None
        self._stale = False  # whether the learner has moved on from what the journal holds
        self._entries = Cache()
        self.load_model()
        if default is not None and "hit" not in self.learner.feedback:
            wanted = f"none: {type(self.learner).__name__} learns from labels, not from hits"
            raise InvalidInput.must("--default-outcome", of, wanted, "hit" if default else "miss")
        same = clock if clock is not time.time else time.monotonic
        self.ages = Ages(clock, steady or same, journal.seq)
        self.restart_seconds = time.perf_counter() - began

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        learner: str | None = None,
        labels: Sequence[str] | None = None,
        n_features: int | None = None,
        set_size: int | None = None,
        seed: int | None = None,
        model: str | Path | None = None,
        max_mb: int | None = None,
        create: bool = True,
        **settings: Any,
    ) -> Session:
        """The session on a journal; a new journal is given its learner, an old one must agree.

        Args:
            path: the journal.
            learner: ``name:key=value,...`` as on the command line; ``set-logit`` by default.
            labels: their names; with ``n_features``, needed for a new journal.
            n_features: the length of a row.
            set_size: how many labels to show.
            seed: of the learner.
            model: a model file to start a new journal with, instead of all the above.
            max_mb: a limit for the size of the journal.
            create: make a journal if there is none; False refuses.
            settings: ``timeout`` in seconds and ``default`` outcome (True, False, or None: none);
                ``snapshot_every`` events; ``keep_snapshots``; ``retain`` seconds; ``shadows``, a list of
                learners; ``clock`` and ``steady``, in place of the system's.
        """
        place = Path(path).resolve()
        asked: dict[str, Any] = {
            "learner": learner,
            "labels": labels,
            "n_features": n_features,
            "set_size": set_size,
            "seed": seed,
        }
        founded = not place.exists()
        if founded:
            if not create:
                raise JournalForeign.must("journal", "superarm serve", "there already", str(place))
            found(place, asked, model)
            log.warning("a new journal was made", extra={"journal": str(place)})
        down = None
        try:
            journal = open_journal(place, max_mb=max_mb)
        except JournalDown as error:  # say, a read-only disk: what is there can still be looked at
            journal, down = open_journal(place, read_only=True, max_mb=max_mb), error
        try:
            check(place, journal.meta(), asked)
            session = cls(journal, learner=learner, **settings)
            session.down, session.founded = down, founded
            return session
        except BaseException:
            journal.close()
            raise

    # ------------------------------------------------------------ the model

    def load_model(self) -> None:
        """The newest snapshot that can be read, and all events since."""
        broken: list[int] = []
        for seq in reversed(self.journal.snapshots()):
            try:
                snapshot = self.journal.snapshot(seq)
                break
            except JournalDamaged as error:  # an older one, and more events, give the same bits
                log.error("snapshot", extra={"reason": str(error)})
                broken.append(seq)
        else:
            raise JournalDamaged(f"journal {self.journal.name} has no snapshot that can be read")
        model = Model(self.journal, snapshot)
        model.shadows = self._load_shadows(model, snapshot)
        model.catch_up()
        self.replayed, self.different = model.seq - snapshot.seq, model.different
        self.broken_snapshots = tuple(broken)
        self.snapshot_seq = snapshot.seq
        self.model = model
        self._entries.clear()
        self._follow()
        self._stale = False

    def _load_shadows(self, model: Model, snapshot: Any) -> dict[str, Shadow]:
        shadows = make_shadows(self._shadow_specs, model.learner) if self._shadow_specs else {}
        kept = {name: snapshot.parts[name] for name in shadows if name in snapshot.parts}
        new = {name: shadow for name, shadow in shadows.items() if name not in kept}
        if new:
            fresh = make_shadows([shadow.spec for shadow in new.values()], self._first_learner())
            rebuild(fresh, self.journal, snapshot.seq)
            shadows |= fresh
        return shadows | {name: Shadow.from_bytes(shadows[name].spec, data) for name, data in kept.items()}

    def _first_learner(self) -> Any:
        return learner_from(self.journal.snapshot(0).parts["model"])

    def _follow(self) -> None:
        """What is read off the model on every request."""
        self.learner, self.stats = self.model.learner, self.model.stats
        self.labels: tuple[str, ...] = self.stats.labels
        self.known = frozenset(self.labels)
        self.retired, self.frozen = frozenset(self.model.settings.retired), self.model.settings.frozen
        self._among = tuple(label for label in self.labels if label not in self.retired)

    def warm_up(self) -> None:
        """Compile what the first request would have to wait for, on a copy that nobody sees."""
        copy = learner_from(model_bytes(self.learner))
        row = np.zeros(copy.n_features, np.float32)
        decision = copy.decide(row)
        copy.update(decision, **({"hit": False} if "hit" in copy.feedback else {"label": self.labels[0]}))

    def model_file(self) -> bytes:
        """The model as `Learner.save` writes it; refused while it is ahead of the journal."""
        if self._stale and self.down is not None:
            raise self.down
        return model_bytes(self.learner)

    def begin_snapshot(self) -> SnapshotJob:
        """A snapshot as of now, to be made and put without keeping anybody waiting."""
        self._writable()
        return SnapshotJob(self.journal, self.learner, self.model.shadows, self.model.totals(), self.clock())

    def snapshot(self) -> None:
        """Keep the whole model, so that a restart needs only the events after it."""
        if self.snapshot_seq < self.journal.seq:
            job = self.begin_snapshot().make()
            while self.put(job):
                pass

    def put(self, job: SnapshotJob) -> bool:
        """One step of a snapshot, in the transaction under way; whether there is more to do."""
        with self.writing():
            more = job.step()
        if not more:
            self.snapshot_seq = job.seq
        return more

    def snapshot_due(self) -> bool:
        return self.journal.seq - self.snapshot_seq >= self.snapshot_every

    def snapshots(self) -> list[dict[str, Any]]:
        """The kept snapshots, oldest first, each with what made it."""
        return [{"seq": seq, "time": at, **made} for seq, at, made in self.journal.snapshot_notes()]

    @property
    def shadows(self) -> tuple[ShadowReport, ...]:
        """Estimated hit rates: of the model itself, then of each shadow."""
        own = self.model.judge.report(self.journal.meta()["learner"], self.stats.learnt)
        return (own, *(shadow.report() for shadow in self.model.shadows.values()))

    # ------------------------------------------------------------ what a service does

    def decide(self, ask: Ask) -> Entry:
        """Choose a set; the same request with the same id gives the same set again."""
        context = context_bytes(ask.context)  # whatever cannot be kept is refused before anything moves
        if ask.id is not None:
            entry = self.find(ask.id, uncommitted=True)
            if entry is not None:
                return self._same(entry, ask, context)
        self._writable()
        id_ = ask.id or self._new_id()
        eligible = ask.eligible
        if self.retired:
            eligible = tuple(one for one in eligible or self.labels if one not in self.retired)
            if len(eligible) < (ask.set_size or self.learner.set_size):
                wanted = "enough labels that are not retired"
                raise Refused.must("eligible", "decision", wanted, ask.eligible)
        try:
            decision = self.learner.decide(ask.x, eligible=eligible, set_size=ask.set_size)
        except WeightsOverflow as error:  # nothing has changed; other rows may well be fine
            wanted = "so small that all scores stay finite"
            raise Refused.must("features", "decision", wanted, "an overflow") from error
        try:
            body = decision_body(decision, ask.set_size, None if ask.eligible is None else list(ask.eligible))
            body["version"] = self.stats.learnt  # how many answers the model had learnt
            x, at = pack_row(decision.x), self.ages.now(self.journal.seq + 1)
            place = Place(id_, self.journal.seq + 1, at, OPEN, None)
            self._append(at, DECISION, x, context, body, place)
            self.stats.decision(at, body["labels"], body["top"], decision.propensity)
            return self._entries.put(Entry(place, x, context, body, decision, None))
        except BaseException as error:
            self._take_back(error)
            raise

    def outcome(self, reply: Reply) -> Entry:
        """Take an answer: learn from it, once."""
        entry = self.find(reply.id, uncommitted=True)
        if entry is None:
            raise UnknownDecision.must("id", "outcome", "that of a decision", reply.id)
        shown, among = entry.body["labels"], entry.body["among"]
        if reply.label is not None and among is not None and reply.label not in among:
            raise Refused.must("label", "outcome", "one of the eligible labels", reply.label)
        hit = reply.label in shown if reply.hit is None else reply.hit
        state = entry.place.state
        if state in (ANSWERED, LATE):
            return self._agreed(entry, reply, hit)
        self._writable()
        expired = entry.outcome if state == EXPIRED else None
        body: dict[str, Any] = {
            "of": entry.place.seq,
            "hit": hit,
            "label": reply.label,
            "late": expired is not None,
            "default": expired["hit"] if expired else None,
        }
        if expired is not None and expired["learnt"]:
            body |= {"learnt": False, "taught": None}  # the default outcome has been learnt already
        else:
            body |= self._teach(entry, hit, reply.label)
        try:
            at = self.ages.now(self.journal.seq + 1)
            self._close(entry, at, OUTCOME, LATE if expired else ANSWERED, body)
            self.stats.outcome(at, at - entry.place.time, shown, body)
            if not entry.erased:
                self.model.judged(entry.decision, body, timeout=False)
        except BaseException as error:
            self._take_back(error)
            raise
        return entry

    def expire(self) -> int:
        """Close decisions that have waited longer than the timeout; how many."""
        if self.timeout is None:
            return 0
        done = 0
        for since, until, before in list(self.ages.due(self.timeout, self.journal.seq)):
            limit = EXPIRED_AT_ONCE - done
            if limit > 0:
                due = self.journal.open_places(limit=limit, since=since, until=until, before=before)
                for place in due:
                    self._expire(place.id)
                done += len(due)
        return done

    def _expire(self, id_: str) -> None:
        entry = self.find(id_, uncommitted=True)
        if entry is None or entry.place.state != OPEN:
            return
        self._writable()
        body: dict[str, Any] = {"of": entry.place.seq, "hit": self.default, "label": None, "late": False}
        if self.default is None:
            body |= {"learnt": False, "taught": None}
        else:
            body |= self._teach(entry, self.default, None)
        try:
            at = self.ages.now(self.journal.seq + 1)
            self._close(entry, at, TIMEOUT, EXPIRED, body)
            self.stats.timeout(body)
            if not entry.erased:
                self.model.judged(entry.decision, body, timeout=True)
        except BaseException as error:
            self._take_back(error)
            raise

    # ------------------------------------------------------------ what an operator does (operating.py)

    def add_labels(self, names: Sequence[str]) -> None:
        """New labels, that may be shown from now on; retired ones come back."""
        operating.add_labels(self, names)

    def retire_labels(self, names: Sequence[str]) -> None:
        """Never show these labels again; answers about them are still taken."""
        operating.retire_labels(self, names)

    def freeze(self) -> None:
        """Go on deciding and keeping answers, and learn nothing."""
        operating.freeze(self, True)

    def resume(self) -> None:
        """Learn again, from the answers that come from now on."""
        operating.freeze(self, False)

    def set_explore(self, explore: str | float | None = None, uniform: float | None = None) -> None:
        """Explore more or less, as the learner's parameters of these names say."""
        operating.set_explore(self, explore, uniform)

    def go_back(self, seq: int) -> None:
        """The weights as they were in the snapshot after an event; nothing else is undone."""
        operating.go_back(self, seq)

    def changes(self) -> list[dict[str, Any]]:
        """What operators have changed, oldest first."""
        return [{"seq": event.seq, "time": event.time, **event.body} for event in self.journal.changes()]

    def erase(self, ids: Iterable[str] | None = None, before: float | None = None) -> int:
        """Forget features and context of these decisions, or of all made before a time; how many."""
        return erasing.erase(self, ids, before)

    def health(self) -> Health:
        """What people on call need to know."""
        began = self._commit_began
        return Health(
            down=None if self.down is None else str(self.down),
            full=isinstance(self.down, JournalFull),
            events=self.journal.seq,
            snapshot_lag=self.journal.seq - self.snapshot_seq,
            upkeep_failures=self.upkeep_failures,
            upkeep_error=self.upkeep_error,
            different_sets=self.different[SETS],
            different_odds=self.different[ODDS],
            different_bits=self.different[BITS],
            commit_seconds=0.0 if began is None else time.monotonic() - began,
            wal_bytes=self.journal.log_bytes(),
            missing_archives=self.journal.missing_archives(),
            broken_snapshots=self.broken_snapshots,
            restart_seconds=self.restart_seconds,
            replayed=self.replayed,
        )

    # ------------------------------------------------------------ durability

    def commit(self) -> None:
        """Make all of it durable. If that fails, none of it has happened."""
        self._commit_began = time.monotonic()
        try:
            with self.writing():
                self.journal.commit()
        finally:
            self._commit_began = None

    def writing(self) -> Writing:
        """With this around it, a failure to write takes back all that was not committed."""
        return Writing(self)

    def fail(self, error: JournalDown) -> None:
        """The journal cannot be written: take back what was not committed, and wait for `recover`."""
        self.down = error
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._stale = True  # the learner and totals are behind it too: recover() loads them anew
        self._entries.clear()
        try:
            self.journal.rollback()
        except (JournalDown, JournalDamaged) as worse:  # recover() opens it anew
            log.error("rollback", extra={"reason": str(worse)})

    def can_retry(self) -> bool:
        return self.down is not None and time.monotonic() >= self._retry_at

    def recover(self) -> None:
        """Go on from what the journal holds; if it can be written again, the session is up."""
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.journal.reopen()
        if self._stale:
            self.load_model()
        self.journal.probe()
        self.down = None

    def close(self) -> None:
        """Snapshot, if it can be written, and let go of the journal."""
        try:
            if self.down is None:
                self.snapshot()
                self.commit()
        finally:
            self.journal.close()

    # ------------------------------------------------------------ looking

    def find(self, id_: str, *, uncommitted: bool = False) -> Entry | None:
        """A decision by its id; only what is durable, unless ``uncommitted``."""
        entry = self._entries.get(id_) if uncommitted else None
        if entry is not None:
            return entry
        place = self.journal.place(id_, uncommitted=uncommitted)
        if place is None:
            return None
        entry = self.entry(place, uncommitted=uncommitted)
        return self._entries.put(entry) if uncommitted else entry

    def entry(self, place: Place, *, uncommitted: bool = False) -> Entry:
        event = self.journal.event(place.seq, uncommitted=uncommitted)
        body, outcome, closing = event.body, None, None
        good = (event.kind, event.id, event.time) == (DECISION, place.id, place.time)
        if place.closed is not None:
            closing = self.journal.event(place.closed, uncommitted=uncommitted)
            told = closing.body
            outcome = outcome_of(closing.time, closing.kind == TIMEOUT, told)
            good = good and closing.id == place.id and told["of"] == place.seq
        if not good or (closing is None) != (place.state == OPEN):
            message = f"the index of {self.journal.name} is wrong about decision {place.id}"
            raise JournalDamaged(message, event=place.seq)
        decision = to_decision(event.x, body, self.learner.id)
        return Entry(place, event.x, event.context, body, decision, outcome)

    # ------------------------------------------------------------ inside

    def _writable(self) -> None:
        if self.down is not None:
            raise self.down

    def _take_back(self, error: BaseException) -> None:
        """The learner has moved, and the journal does not know of it."""
        if self.down is None:
            if not isinstance(error, JournalDown):
                log.error("taken back", extra={"reason": repr(error)})
                error = JournalDown(f"what was not committed is taken back, after {error!r}")
            self.fail(error)

    def _append(
        self, at: float, kind: int, x: bytes | None, context: bytes | None, body: Any, place: Place | None
    ) -> None:
        self.journal.append(at, kind, x, context, dumps(body), place)
        if self.journal.seq % INDEX_EVERY == 0:
            self.journal.index()

    def _teach(self, entry: Entry, hit: bool, label: str | None) -> dict[str, Any]:
        """Learn, if there is anything to learn from; what the event says of it."""
        eligible, feedback = entry.body["eligible"], self.learner.feedback
        # of a label that was retired when the set was made, the learner hears that it was not shown
        named = label is not None and "label" in feedback and (eligible is None or label in eligible)
        answer: dict[str, Any] = {"label": label} if named else {"hit": hit}
        if self.frozen:
            return {"learnt": False, "taught": None}
        if entry.erased:
            return {"learnt": False, "taught": None, "refused": "its features were erased"}
        if not named and label is not None and "hit" not in feedback:
            return {"learnt": False, "taught": None, "refused": "the label is retired"}
        try:
            self.learner.update(entry.decision, **answer)
        except WeightsOverflow as error:  # the learner is as before; the answer is kept all the same
            return {"learnt": False, "taught": None, "refused": str(error)}
        except SuperarmError:  # refused before anything moved
            raise
        except BaseException as error:
            self._take_back(error)
            raise
        return {"learnt": True, "taught": answer}

    def _same(self, entry: Entry, ask: Ask, context: bytes | None) -> Entry:
        if entry.erased:
            raise Erased.must("id", "decision", "one whose features were not erased", ask.id)
        d = self.learner.n_features
        row = as_row(ask.x, d, "decision")
        row = sparsify(row) if isinstance(entry.decision.x, SparseRow) else densify(row, d)
        eligible = None if ask.eligible is None else sorted(ask.eligible)
        kept = entry.body
        checks = {
            "features": pack_row(row) == entry.x,
            "eligible": eligible == (None if kept["among"] is None else sorted(kept["among"])),
            "set_size": ask.set_size == kept["asked"],
            "context": context == entry.context
            or (None not in (context, entry.context) and ask.context == loads(entry.context or b"")),
        }
        for field, same in checks.items():
            if not same:
                wanted = f"what they were when decision {entry.place.id!r} was first asked for"
                raise Conflict.must(field, "decision", wanted, "something else")
        return entry

    def _agreed(self, entry: Entry, reply: Reply, hit: bool) -> Entry:
        assert entry.outcome is not None
        kept = entry.outcome
        if hit == kept["hit"] and reply.label in (None, kept["label"]):
            return entry
        field = "hit" if reply.label is None else "label"
        first = kept["hit"] if kept["label"] is None or field == "hit" else kept["label"]
        got = reply.hit if reply.label is None else reply.label
        raise Conflict.must(field, "outcome", f"{first!r}, as it was first answered", got)

    def _close(self, entry: Entry, at: float, kind: int, state: int, body: dict[str, Any]) -> None:
        place = entry.place._replace(state=state, closed=self.journal.seq + 1)
        self._append(at, kind, None, None, body, place)
        entry.place = place
        entry.outcome = outcome_of(at, state == EXPIRED, body)

    def _new_id(self) -> str:
        """Ids that grow with time, so that the index of ids grows at its end; 48 random bits."""
        stamp = int(self.clock() * 1e3)
        return f"{stamp:011x}{os.urandom(6).hex()}"


class Writing:
    """A failure to write inside of it takes back all that was not committed."""

    __slots__ = ("session",)

    def __init__(self, session: Session) -> None:
        self.session = session

    def __enter__(self) -> None:
        self.session._writable()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self.session._take_back(error)
