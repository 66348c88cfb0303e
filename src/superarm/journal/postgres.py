"""A journal in PostgreSQL, which many processes write. (postgres_schema.py: its tables; store.py: its promises)

Each thread has a connection; all waits are bounded (postgres_connection.py).
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from select import POLLIN, poll
from threading import Lock, local
from time import monotonic
from typing import Any

from superarm._types import JsonObject
from superarm.errors import Unquoted
from superarm.journal.clock import DatabaseClock
from superarm.journal.errors import JournalLocked, JournalMismatch, JournalUnavailable, OtherEventsFirst
from superarm.journal.events import CHANGE, OUTCOME, TIMEOUT, Event, chain_start
from superarm.journal.postgres_connection import Address, Connection, database_errors
from superarm.journal.postgres_schema import ADVISORY_LOCK, ROUND_BLOCK, check_database, make_tables
from superarm.journal.statements import IN_INDEX, Statement, new_journal_statements
from superarm.journal.store import PROBE_BYTES, JournalStore, LastEvent, Snapshot
from superarm.native import cpu_level

# of a session that has a lock: it is free soon after its machine has died
KEEPALIVE = ("tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3")
# without kinds it writes nothing: where another event than the given one is the last
APPEND = """SELECT numbers, digests FROM (SELECT seq FROM head FOR UPDATE) last, LATERAL append(
  %b::float8[], CASE WHEN last.seq = coalesce(%b::bigint, last.seq) THEN %b::smallint[] END, %b::text[],
  %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bigint[])"""


class PostgresStore(JournalStore):
    """An open journal in a database.

    Args:
        journal: its address, ``postgresql://user@host/name``.
        read_only: one moment of it, for replay, verify and export.
        statement_timeout: seconds that a statement may take before it counts as failed.
        application: the name of its connections; `new_application_name` for a process that serves.
    """

    shared = True

    def __init__(
        self,
        journal: str | Path,
        *,
        read_only: bool = False,
        statement_timeout: float = 5.0,
        application: str = "superarm",
    ) -> None:
        self.address = Address(journal, statement_timeout=statement_timeout)
        self.name, self.read_only, self.application = str(self.address), read_only, application
        self._clock: DatabaseClock | None = None
        self._rounds: Iterator[int] = iter(())
        self._does_upkeep_until = 0.0
        self._lock_connection: Connection | None = None  # its session has the lock of `ensure_alone`
        self._read_connection: Connection | None = None
        self._per_thread = local()  # each thread has a connection of its own
        self._opened: set[Connection] = set()
        self._opened_lock, self._is_ended = Lock(), False
        try:
            if read_only:
                self._read_connection = self.address.connect("superarm read", statement_timeout=0.0)
                self._read_connection.autocommit = False
                self._read_connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            with self._connected() as connection:
                if not check_database(connection, self.address) or not _has_meta(connection):
                    wanted = "a superarm journal (superarm serve with --labels makes one)"
                    raise JournalMismatch.must("journal", "superarm", wanted, self.name)
        except BaseException:
            self.close()
            raise

    @classmethod
    def exists(cls, journal: str | Path) -> bool:
        address = Address(journal)
        with address.connect("superarm read") as connection, database_errors(address):
            return check_database(connection, address) and _has_meta(connection)

    @classmethod
    def create(cls, journal: str | Path, meta: JsonObject, first: Snapshot) -> bool:
        address, chain = Address(journal), chain_start(meta)
        make_tables(address)
        connecting = address.connect("superarm create")
        with connecting as connection, database_errors(address), connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('superarm journal'))")
            if _has_meta(connection):
                return False
            head = ("INSERT INTO head VALUES (true, 0, 0.0, ?)", (chain,))
            execute_all(connection, [*new_journal_statements(meta, chain, first), head])
            return True

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Give this thread's connection; drop it after a failure, since it is not known what was written."""
        if self._read_connection is not None:
            with database_errors(self.address):
                yield self._read_connection
            return
        connection: Connection | None = getattr(self._per_thread, "connection", None)
        try:
            if connection is None or _is_closed(connection):
                self._drop(connection)
                connection = self._per_thread.connection = self.address.connect(self.application)
                with self._opened_lock:
                    if self._is_ended:
                        raise JournalUnavailable(f"journal {self.name} is closed")
                    self._opened.add(connection)
            with database_errors(self.address):
                yield connection
        except BaseException:
            self._drop(connection)
            raise

    def _drop(self, connection: Connection | None) -> None:
        if connection is not None:
            connection.close()
            with self._opened_lock:
                self._opened.discard(connection)
        self._per_thread.connection = None

    def _select(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._connected() as connection:
            return connection.execute(sql.replace("?", "%s"), values, binary=True).fetchall()

    def _having_ids(self, ids: Sequence[str]) -> Statement:
        return f"e.id = ANY(?) AND {IN_INDEX}", (list(ids),)

    def close(self) -> None:
        with self._opened_lock:  # other threads may be about to open theirs
            opened, self._is_ended = tuple(self._opened), True
        for connection in (self._read_connection, self._lock_connection, *opened):
            if connection is not None:
                connection.close()

    # ------------------------------------------------------------ writing

    def ensure_alone(self) -> None:
        if self._lock_connection is not None:
            if not _is_closed(self._lock_connection):
                return
            self._lock_connection.close()
        connection = self.address.connect(self.application)
        with database_errors(self.address):
            for setting in KEEPALIVE:
                connection.execute(f"SET {setting}")
            [is_alone] = connection.execute(
                "SELECT pg_try_advisory_lock(%s, 1)", (ADVISORY_LOCK,)
            ).fetchone() or [False]
        if not is_alone:
            connection.close()
            got = Unquoted(f"{self.name}, which another one has")
            raise JournalLocked.must("journal", "superarm", "used by one process", got)
        self._lock_connection = connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if self.read_only:
            raise self._not_writable()
        with self._connected() as connection:
            yield connection

    def _execute_all(self, statements: Iterable[Statement]) -> list[int]:
        with self.writing() as connection, connection.transaction():
            # one process at a time
            connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (ADVISORY_LOCK,))
            return execute_all(connection, statements)

    def append(self, events: Sequence[Event], *, only_after: int | None = None) -> list[Event]:
        if not events:
            return []
        with self.writing() as connection:
            row = connection.execute(APPEND, _append_arguments(events, only_after), binary=True).fetchone()
        assert row is not None
        if row[0] is None:
            raise OtherEventsFirst
        lost = []
        for event, seq, digest in zip(events, *row, strict=True):
            if seq is None:
                lost.append(event)
            else:
                event.seq, event.chain_digest = seq, digest
        return lost

    def purge_erased(self) -> None:
        """Do nothing: VACUUM frees what was erased from the pages of the database."""

    def check(self) -> None:
        with self.writing() as connection:
            check_database(connection, self.address)
            connection.execute(APPEND, _append_arguments(()), binary=True)

    def reopen(self) -> None:
        self.check()
        large = Event.new(0.0, CHANGE, "x" * PROBE_BYTES)  # a full disk has room for a small one, perhaps
        with self.writing() as connection, connection.transaction(force_rollback=True):
            connection.execute(APPEND, _append_arguments([large]), binary=True)

    # ------------------------------------------------------------ reading

    def head(self) -> LastEvent:
        return LastEvent(*self._select("SELECT seq, time, digest FROM head")[0])

    # ------------------------------------------------------------ what many processes need

    def clock(self) -> DatabaseClock:
        if self._clock is None:
            self._clock = DatabaseClock(lambda: float(self._select(f"SELECT {NOW}")[0][0]))
        return self._clock

    def next_round(self) -> int:
        round_ = next(self._rounds, None)
        if round_ is None:
            with self.writing() as connection:
                row = connection.execute("SELECT nextval('rounds')").fetchone()
            assert row is not None
            start = int(row[0])
            self._rounds = iter(range(start, start + ROUND_BLOCK))
            round_ = next(self._rounds)
        return round_

    def begin_upkeep(self) -> bool:
        """Return whether this process is to do the upkeep: the first to claim it, half a second after another has."""
        self.clock().update()
        if monotonic() >= self._does_upkeep_until:
            with self.writing() as connection:
                if connection.execute(CLAIM_UPKEEP, (UPKEEP_SECONDS,)).rowcount == 0:
                    return False
            self._does_upkeep_until = monotonic() + UPKEEP_SECONDS
        return True

    def processes(self) -> list[JsonObject]:
        """Return the processes that serve on this journal, oldest first, by the connections of its database role."""
        names = ("process", "cpu", "began")
        return [dict(zip(names, row, strict=True)) for row in self._select(PROCESSES)]

    # ------------------------------------------------------------ for people on call

    def problems(self) -> Iterator[str]:
        last, head = self.last_event(), self.head()
        if last != head and last.seq > 0:
            yield f"the last event is {last.seq}, and {head.seq} was written last"

    def size(self) -> int:
        sql = """SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = 'superarm'::regnamespace AND relkind = 'r'"""
        return int(self._select(sql)[0][0] or 0)


NOW = "extract(epoch FROM clock_timestamp())::float8"
UPKEEP_SECONDS = 0.45
# in milliseconds; also if the clock of the database was set back
CLAIM_UPKEEP = f"""
INSERT INTO progress VALUES ('upkeep', (1e3 * {NOW})::bigint) ON CONFLICT (key) DO UPDATE
SET value = excluded.value WHERE abs(excluded.value - progress.value) > 1e3 * %s"""

SERVES = "superarm serve"
PROCESSES = f"""
SELECT split_part(application_name, ' ', 3), split_part(application_name, ' ', 4),
  extract(epoch FROM min(backend_start))::float8
FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '{SERVES} %%'
GROUP BY application_name ORDER BY 3"""


def new_application_name() -> str:
    """Return the name of the connections of a process that serves: at most 63 letters."""
    process = f"{socket.gethostname()[:24]}-{os.getpid()}-{secrets.token_hex(2)}"
    return f"{SERVES} {process} {cpu_level()}"


def _has_meta(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM meta").fetchone() is not None


def execute_all(connection: Connection, statements: Iterable[Statement]) -> list[int]:
    """Execute statements in the transaction under way; return how many rows each has changed."""
    return [connection.execute(sql.replace("?", "%s"), values).rowcount for sql, values in statements]


def _append_arguments(events: Sequence[Event], only_after: int | None = None) -> list[Any]:
    """Return the values of `APPEND`."""
    names = ("kind", "id", "x", "context", "body_json", "content_digest")
    return [
        [event.time for event in events],
        only_after,
        *([getattr(event, name) for event in events] for name in names),
        [event.own_digest() for event in events],
        [event.body.target_seq if event.kind in (OUTCOME, TIMEOUT) else None for event in events],
    ]


def _is_closed(connection: Connection) -> bool:
    """Return whether the server has ended the connection: an idle one has nothing to read but that."""
    if connection.closed:
        return True
    waiting = poll()
    waiting.register(connection.fileno(), POLLIN)
    return bool(waiting.poll(0))
