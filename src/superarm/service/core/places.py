"""Where each id stands: a table that is brought up to date now and then, and what it does not know yet.

Many rows at once cost less than one at a time, so the table lags behind the events by some thousands.
``fresh`` holds what is on the disk as events only, ``staged`` what the transaction under way has moved.
Readers may look at any moment, from another thread: a dictionary is replaced, or only grows.
"""

from __future__ import annotations

import sqlite3
from itertools import islice
from math import inf

from superarm.service.core.journal import OPEN, Place

__all__ = ["Places"]

PUT = """INSERT INTO decisions VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, closed = excluded.closed"""


class Places:
    def __init__(self) -> None:
        self.staged: dict[str, Place] = {}
        self.fresh: dict[str, Place] = {}
        self._written = False  # whether the transaction brings the table up to date

    def rows(self) -> list[Place]:
        """All that the table does not know."""
        return sorted({**self.fresh, **self.staged}.values())

    def written(self) -> None:
        self.staged, self._written = {}, True

    def committed(self) -> None:
        if self._written:
            self.fresh = dict(self.staged)
        else:
            self.fresh.update(self.staged)
        self.staged, self._written = {}, False

    def replaced(self, fresh: dict[str, Place]) -> None:
        """What is on the disk was read again; what was staged is gone."""
        self.fresh, self.staged, self._written = fresh, {}, False

    def find(self, id_: str, connection: sqlite3.Connection, uncommitted: bool) -> Place | None:
        known = self.staged.get(id_) if uncommitted else None
        if known is None and not (uncommitted and self._written):
            known = self.fresh.get(id_)
        if known is not None:
            return known
        row = connection.execute("SELECT * FROM decisions WHERE id = ?", (id_,)).fetchone()
        return Place(*row) if row else None

    def waiting(
        self,
        connection: sqlite3.Connection,
        limit: int,
        last: tuple[float, int],
        numbers: tuple[int, int],
        before: float,
    ) -> list[Place]:
        """Open decisions by (time, number): after ``last``, within ``numbers``, made before a time."""
        fresh = list(self.fresh.values())  # in one step: the thread that commits may add to it
        known = {place.id for place in fresh}
        cursor = connection.execute(
            "SELECT * FROM decisions INDEXED BY open_decisions WHERE state = 0 AND (time, seq) > (?, ?)"
            " AND time < ? AND seq > ? AND seq <= ? ORDER BY time, seq",
            (*last, before, *numbers),
        )
        try:
            rows = (place for row in cursor if (place := Place(*row)).id not in known)
            found = list(islice(rows, limit))
        finally:
            cursor.close()
        found += [
            place
            for place in fresh
            if place.state == OPEN
            and (place.time, place.seq) > last
            and place.time < before
            and numbers[0] < place.seq <= numbers[1]
        ]
        found.sort(key=lambda place: (place.time, place.seq))
        return found[:limit]


NO_LAST = (-inf, 0)
