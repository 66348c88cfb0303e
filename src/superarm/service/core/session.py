"""A learner behind a journal. No HTTP in here.

The room: decisions and answers (desk.py), what moves the model (model.py, changes.py, shadows.py), where it
is kept (journal.py, sqlite.py, archive.py, snapshots.py), what an operator does (operating.py, erasing.py,
verify.py, backup.py, replay.py, health.py), and taking turns (group.py, upkeep.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from superarm.service.core import erasing, operating
from superarm.service.core.clocks import Ages
from superarm.service.core.compare import BITS, ODDS, SETS
from superarm.service.core.desk import Desk, check_seconds
from superarm.service.core.entries import Ask, Cache, Entry, Reply
from superarm.service.core.faults import (
    JournalDamaged,
    JournalDown,
    JournalForeign,
    JournalFull,
)
from superarm.service.core.founding import check, found
from superarm.service.core.health import Health
from superarm.service.core.journal import open_journal
from superarm.service.core.model import Model, load_class
from superarm.service.core.shadows import Shadow, ShadowReport, make_shadows, rebuild
from superarm.service.core.snapshots import SnapshotJob, learner_from, model_bytes, some_row

__all__ = ["Ask", "Entry", "Reply", "Session"]

log = logging.getLogger("superarm.service")


class Session(Desk, operating.Operated):
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
        check_seconds(timeout=timeout, retain=retain)
        began = time.perf_counter()
        load_class(journal.meta(), learner)
        self.journal, self.timeout, self.default, self.clock = journal, timeout, default, clock
        self.snapshot_every, self.keep_snapshots, self.retain = snapshot_every, keep_snapshots, retain
        self.down: JournalDown | None = None
        self.founded = False
        self.upkeep_failures = 0  # counted by Upkeep
        self.upkeep_error: str | None = None
        self._shadow_specs = tuple(shadows)
        self._retry_at = 0.0
        self._commit_began: float | None = None
        self._stale = False  # whether the learner has moved on from what the journal holds
        self._entries = Cache()
        self.load_model()
        self.check_default()
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
            labels: their names, needed for a new journal.
            n_features: the length of a row; left out, the first row tells it (and may have names).
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
            if founded:  # a start that fails leaves nothing behind
                for end in ("", "-mark", ".lock"):
                    place.with_name(place.name + end).unlink(missing_ok=True)
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

    def warm_up(self) -> None:
        """Compile what the first request would have to wait for, on a copy that nobody sees."""
        copy = learner_from(model_bytes(self.learner))
        decision = copy.decide(some_row(copy))
        copy.update(decision, **({"hit": False} if "hit" in copy.feedback else {"label": self.labels[0]}))

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return int(self.journal.seq)

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
        return bool(self.journal.seq - self.snapshot_seq >= self.snapshot_every)

    @property
    def shadows(self) -> tuple[ShadowReport, ...]:
        """Estimated hit rates: of the model itself, then of each shadow."""
        own = self.model.judge.report(self.journal.meta()["learner"], self.stats.learnt)
        return (own, *(shadow.report() for shadow in self.model.shadows.values()))

    # ------------------------------------------------------------ what an operator does (operating.py)

    def make(self, change: dict[str, Any]) -> None:
        operating.make(self, change)

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

    def parts(self) -> tuple[Any, Any]:
        """What takes turns, and what looks after it."""
        from superarm.service.core.group import Group
        from superarm.service.core.upkeep import Upkeep

        group = Group(self)
        return group, Upkeep(group)

    def recent(self, limit: int) -> list[Entry]:
        """The newest decisions, newest first."""
        found = [self.journal.place(event.id) for event in self.journal.recent(limit)]
        return [self.entry(place) for place in found if place is not None]

    def close(self) -> None:
        """Snapshot, if it can be written, and let go of the journal."""
        try:
            if self.down is None:
                self.snapshot()
                self.commit()
        finally:
            self.journal.close()
