"""Old events in Parquet files beside the journal: `events.db` has its archives in `events.db-archive/`.

Events up to a kept snapshot may move. The file is whole, read back, and on the disk, and so is its name,
before the journal says that it exists, and the journal forgets the events only after that: a crash or a power
cut at any point leaves each event in at least one place, and the journal says which one counts. The
journal keeps the SHA-256 of each file, which is compared before the file is first read.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superarm.service.core.events import DECISION, Event
from superarm.service.core.faults import JournalDamaged, JournalDown
from superarm.service.core.files import digest_of, discard, make_folder, remove, write_durably
from superarm.service.core.schema import connect, down

if TYPE_CHECKING:
    from superarm.service.core.sqlite import SqliteJournal
    from superarm.service.core.sqlite_reading import SqliteReader

__all__ = ["Compaction", "folder", "read", "tidy", "write_events"]

DELETE_AT_ONCE = 2_000
COLUMNS = ("seq", "time", "kind", "id", "x", "context", "body", "content", "digest")


def folder(journal: Path) -> Path:
    return journal.with_name(journal.name + "-archive")


def read(journal: SqliteReader, file: str, sha256: bytes, after: int, until: int) -> Iterator[Event]:
    """The events of one archive with after < seq <= until."""
    import polars as pl

    path = folder(journal.path) / file
    known = journal.intact  # archives that this process has compared with their checksums
    try:
        if file not in known and digest_of(path) != sha256:
            raise JournalDamaged(f"archive {path} is not what was written")
    except OSError as error:
        if isinstance(error, JournalDamaged):
            raise
        raise JournalDamaged(f"archive {path} cannot be read: {error.strerror}") from error
    known.add(file)
    wanted = pl.scan_parquet(path).filter((pl.col("seq") > after) & (pl.col("seq") <= until))
    for row in wanted.collect().iter_rows():
        yield Event(*row)


def write_events(path: Path, events: Iterable[tuple[Any, ...]]) -> bytes:
    """An archive of these events, on the disk; its SHA-256."""
    import polars as pl

    kinds = (*(pl.Int64, pl.Float64, pl.Int8, pl.String), *(pl.Binary,) * 5)
    table = pl.DataFrame(list(events), schema=dict(zip(COLUMNS, kinds, strict=True)), orient="row")
    memory = io.BytesIO()  # so that whatever fails in writing is told by the file itself
    table.write_parquet(memory, row_group_size=4096)
    make_folder(path.parent)
    write_durably(path, lambda file: file.write(memory.getbuffer()))
    if not pl.read_parquet(path).equals(table):
        raise JournalDown(f"archive {path} did not come back from the disk as it was written")
    return digest_of(path)


def tidy(journal: SqliteJournal) -> None:
    """Take away what a crash has left: parts, and files not listed whose events the journal has."""
    place = folder(journal.path)
    if not place.is_dir():
        return
    discard(*place.glob(".*.part"))
    listed = {row[0] for row in journal.reader.execute("SELECT file FROM archives")}
    for path in place.glob("*.parquet"):
        if path.name not in listed and _has_all_of(journal, path):
            remove(path)


def _has_all_of(journal: SqliteJournal, path: Path) -> bool:
    """Whether the journal's own history runs through the last event of an archive."""
    import polars as pl

    try:
        seq, digest = pl.scan_parquet(path).select("seq", "digest").tail(1).collect().row(0)
        return bool(seq <= journal.seq and journal.digest_at(seq) == digest)
    except (OSError, IndexError, pl.exceptions.PolarsError):
        return False


class Compaction:
    """Moves all events up to a kept snapshot, in steps that a running service can take in turn.

    `write` touches only files and reads the journal, and may run in another thread; then call
    `step` until it returns False, each time followed by a commit.
    """

    def __init__(self, journal: SqliteJournal, keep: int) -> None:
        self.journal = journal
        kept = journal.snapshots()
        self.first = journal.archived() + 1
        self.last = kept[-keep] if len(kept) >= keep > 0 else 0
        self._listed = self.last < self.first
        self._row: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to do: events to move, or left over from a crash."""
        oldest = self.journal.reader.execute("SELECT min(seq) FROM events").fetchone()[0]
        return not self._listed or (oldest is not None and oldest < self.first)

    def write(self) -> None:
        """Write the archive, whole, to the disk."""
        if self._listed:
            return
        # a connection of its own: this may run in another thread than the journal's readers
        connection = connect(self.journal.path, write=False)
        try:
            sql = f"SELECT {', '.join(COLUMNS)} FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
            rows = connection.execute(sql, (self.first, self.last)).fetchall()
        finally:
            connection.close()
        if len(rows) != self.last - self.first + 1:
            raise JournalDamaged(f"events of journal {self.journal.path} up to {self.last} are missing")
        file = f"{self.first:012d}-{self.last:012d}.parquet"
        try:
            sha256 = write_events(folder(self.journal.path) / file, rows)
        except OSError as error:
            raise down(self.journal.path, error) from error
        contents = sum(row[2] == DECISION and row[4] is not None for row in rows)
        oldest = min(row[1] for row in rows)
        self._row = (self.last, self.first, file, sha256, rows[-1][-1], oldest, contents)

    def step(self) -> bool:
        """One small change to the journal; whether there is more to do."""
        if not self._listed:
            self._listed = True
            self.journal.write("INSERT INTO archives VALUES (?, ?, ?, ?, ?, ?, ?)", self._row)
            # the first snapshot is the learner as it began: it stays, to replay from the start
            sql = "SELECT seq FROM snapshots WHERE seq > 0 AND seq < ? AND NOT pinned"
            self.journal.drop_snapshots([row[0] for row in self.journal.write(sql, (self.last,)).fetchall()])
            return True
        last = max(self.last, self.first - 1)
        sql = "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <= ? ORDER BY seq LIMIT ?)"
        return self.journal.write(sql, (last, DELETE_AT_ONCE)).rowcount > 0
