"""What a process of a shared journal tells those who look: totals, decisions, health, and who else serves."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import nan
from typing import Any

from orjson import loads

from superarm.service.core.entries import Entry
from superarm.service.core.faults import JournalDamaged, JournalFull
from superarm.service.core.health import Health
from superarm.service.core.journal import Place
from superarm.service.core.postgres.clock import NOW
from superarm.service.core.postgres.desk import SharedDesk, entry_of
from superarm.service.core.postgres.reading import PostgresJournal
from superarm.service.core.postgres.rebuilding import newest
from superarm.service.core.shadows import ShadowReport
from superarm.service.core.stats import Stats

__all__ = ["Watching"]

FRESH_SECONDS = 0.2  # totals for those who look may be this old


class Watching(SharedDesk):
    """What `SharedSession` builds on."""

    journal: PostgresJournal
    meta: dict[str, Any]
    totals: dict[str, Any]
    processes: list[dict[str, Any]]
    seq: int
    snapshot_seq: int
    replayed: int
    lease: float
    restart_seconds: float
    learner_error: str | None
    _looked: float
    _learner_beat: float | None  # the learner's last one, by the steady clock of this process
    _pick_up: Callable[[Any], None]

    def refresh(self, *, now: bool = False) -> None:
        """Totals as the learner published them last, for whoever looks."""
        if not now and time.monotonic() - self._looked < FRESH_SECONDS:
            return
        with self.journal.reading() as connection:
            row = connection.execute(
                "SELECT totals, seq FROM published WHERE part = 'model'", binary=True
            ).fetchone()
            if row is not None:
                self.totals, self.seq = loads(row[0]), int(row[1])
            elif not self.totals:
                model = newest(connection, self.address)
                self.totals, self.seq = model.totals(), model.seq
            found = connection.execute("SELECT coalesce(max(seq), 0) FROM snapshots").fetchone()
            self.snapshot_seq = int(found[0]) if found else 0
            self.processes = [
                dict(
                    zip(
                        ("process", "began", "silent", "version", "behind", "learns", "superarm"),
                        row,
                        strict=True,
                    )
                )
                for row in connection.execute(PROCESSES)
            ]
            self._hear_learner(connection)
        self.stats = Stats.from_dict(self._stats_labels(), self.totals["stats"])
        self._looked = time.monotonic()

    def _hear_learner(self, connection: Any) -> None:
        age = connection.execute(f"SELECT {NOW} - beat FROM leader").fetchone()
        self._learner_beat = None if age is None else time.monotonic() - float(age[0])

    @property
    def learner_age(self) -> float | None:
        """Seconds since the learner was heard of; None if nobody has ever learnt."""
        return None if self._learner_beat is None else time.monotonic() - self._learner_beat

    def _stats_labels(self) -> tuple[str, ...]:
        """The labels that the totals count, which may be newer or older than those that decide."""
        labels = (self.coming or self.serving).learner.labels
        assert labels is not None
        count = len(self.totals["stats"]["shown"])
        if count > len(labels):
            with self.journal.reading() as connection:
                self._pick_up(connection)
            labels = (self.coming or self.serving).learner.labels
            assert labels is not None
        return tuple(str(label) for label in labels[:count])

    def find(self, id_: str, *, uncommitted: bool = False) -> Entry | None:
        found = self.journal.kept([id_]).get(id_)
        return None if found is None else entry_of(found, self.learner.id)

    def recent(self, limit: int) -> list[Entry]:
        ids = [row.id for row in self.journal.recent(limit)]
        found = self.journal.kept(ids)
        return [entry_of(found[id_], self.learner.id) for id_ in ids if id_ in found]

    def entry(self, place: Place, *, uncommitted: bool = False) -> Entry:
        found = self.find(place.id)
        if found is None:
            raise JournalDamaged(f"decision {place.id} is missing")
        return found

    def changes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.journal.changes()
        return found

    @property
    def shadows(self) -> tuple[ShadowReport, ...]:
        own, *others = self.totals.get("shadows") or [{**NO_REPORT}]
        reports = [{**own, "spec": self.meta["learner"]}, *others]
        floats = ("rate", "low", "high")
        return tuple(
            ShadowReport(**{**one, **{f: nan if one[f] is None else one[f] for f in floats}})
            for one in reports
        )

    def health(self) -> Health:
        more = []
        if self.learner_age is not None and self.learner_age > 2.0 * self.lease + 1.0:
            more.append(f"nobody has learnt for {self.learner_age:.0f} s")
        if self.learner_error is not None:
            more.append(f"learning fails: {self.learner_error}")
        return Health(
            down=None if self.down is None else str(self.down),
            full=isinstance(self.down, JournalFull),
            events=self.seq,
            snapshot_lag=self.seq - self.snapshot_seq,
            restart_seconds=self.restart_seconds,
            replayed=self.replayed,
            more=tuple(more),
        )


NO_REPORT = {"spec": "", "rate": None, "low": None, "high": None, "rows": 0, "learnt": 0, "problem": ""}

# how far behind: since when there has been a model that is newer than the process's own
PROCESSES = f"""
SELECT p.process, p.began, {NOW} - p.beat, p.version,
  coalesce({NOW} - (SELECT min(b.time) FROM batches b WHERE b.version = p.version + 1), 0.0),
  coalesce((SELECT l.process = p.process AND {NOW} - l.beat < 60.0 FROM leader l), false), p.superarm
FROM processes p WHERE p.beat > {NOW} - 60.0 ORDER BY p.began"""
