"""Old events in Parquet files beside the journal: `events.db` has its archives in `events.db-archive/`.

Events up to a kept snapshot may move. The file is complete and on the disk before the journal says
that it exists, and the journal forgets the events only after that: a crash at any point leaves
each event in at least one place, and the journal says which one counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from superarm.service.core.events import Event
from superarm.storage import write_atomically

if TYPE_CHECKING:
    from superarm.service.core.journal import Journal

__all__ = ["Compaction", "folder", "read"]

DELETE_AT_ONCE = 2_000
COLUMNS = ("seq", "time", "kind", "id", "x", "body")


def folder(journal: Path) -> Path:
    return journal.with_name(journal.name + "-archive")


def read(path: Path, after: int, until: int) -> Iterator[Event]:
    """The events of one archive with after < seq <= until."""
    import polars as pl

    wanted = pl.scan_parquet(path).filter((pl.col("seq") > after) & (pl.col("seq") <= until))
    for row in wanted.collect().iter_rows():
        yield Event(*row)


class Compaction:
    """Moves all events up to a kept snapshot, in steps that a running service can take in turn.

    `write` touches only files and reads the journal, and may run in another thread; then call
    `step` until it returns False, each time followed by a commit.
    """

    def __init__(self, journal: Journal, keep: int) -> None:
        self.journal = journal
        kept = journal.snapshots()
        self.first = journal.archived() + 1
        self.last = kept[-keep] if len(kept) >= keep > 0 else 0
        self._listed = self.last < self.first

    def __bool__(self) -> bool:
        """Whether there is anything to do: events to move, or left over from a crash."""
        oldest = self.journal.reader.execute("SELECT min(seq) FROM events").fetchone()[0]
        return not self._listed or (oldest is not None and oldest < self.first)

    def write(self) -> None:
        """Write the archive, whole, to the disk."""
        if self._listed:
            return
        import polars as pl

        # a connection of its own: this may run in another thread than the journal's readers
        connection = self.journal._connect(write=False)
        try:
            sql = f"SELECT {', '.join(COLUMNS)} FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
            rows = connection.execute(sql, (self.first, self.last)).fetchall()
        finally:
            connection.close()
        kinds = (pl.Int64, pl.Float64, pl.Int8, pl.String, pl.Binary, pl.Binary)
        table = pl.DataFrame(rows, schema=dict(zip(COLUMNS, kinds, strict=True)), orient="row")
        folder(self.journal.path).mkdir(exist_ok=True)
        target = folder(self.journal.path) / self._name
        write_atomically(target, lambda file: table.write_parquet(file, row_group_size=4096))

    @property
    def _name(self) -> str:
        return f"{self.first:012d}-{self.last:012d}.parquet"

    def step(self) -> bool:
        """One small change to the journal; whether there is more to do."""
        if not self._listed:
            self._listed = True
            self.journal.write("INSERT INTO archives VALUES (?, ?, ?)", (self.last, self.first, self._name))
            # the first snapshot holds the learner's id and no weights: it stays, to replay from the start
            self.journal.write("DELETE FROM snapshots WHERE seq > 0 AND seq < ?", (self.last,))
            return True
        last = max(self.last, self.first - 1)
        sql = "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <= ? ORDER BY seq LIMIT ?)"
        return self.journal.write(sql, (last, DELETE_AT_ONCE)).rowcount > 0
