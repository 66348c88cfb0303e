"""Connections to PostgreSQL: all waits are bounded, failures are JournalUnavailable, and no secret is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from superarm._extras import require_extra
from superarm._types import JsonObject
from superarm.errors import InvalidInput, Unquoted
from superarm.journal.backends import redacted
from superarm.journal.errors import JournalFull, JournalMismatch, JournalUnavailable

require_extra("postgres")
import psycopg  # noqa: E402
from psycopg import conninfo  # noqa: E402

SECRETS = ("password", "sslpassword")
CONNECT_SECONDS = 2  # the least that libpq knows
GRACE_SECONDS = 1.0  # for the server's own timeout, before it counts as silent
OPTIONS = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 8000,
}


class Connection(psycopg.Connection[Any]):
    """A connection whose waits are bounded, also when the server hangs."""

    statement_timeout: float | None = None  # seconds for a statement; None for ever

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None or self.statement_timeout is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.statement_timeout + GRACE_SECONDS)
        except psycopg.errors._WaitTimeout as error:
            self.pgconn.finish()  # any later answer comes too late
            raise psycopg.OperationalError(f"no answer for {self.statement_timeout:g} s") from error


class Address:
    """Where the database is. Its text holds no secret: passwords come from the environment or a file.

    Args:
        url: ``postgresql://user@host:port/name?…``. libpq finds the password: in PGPASSWORD, in the file
            that PGPASSFILE or ``passfile=`` names (else ~/.pgpass), or not at all.
        statement_timeout: seconds that a statement may take before it counts as failed.

    >>> str(Address("postgresql://serve@db.example:5432/arms?sslmode=require"))
    'postgresql://serve@db.example:5432/arms'
    """

    def __init__(self, url: str | Path, *, statement_timeout: float = 5.0) -> None:
        url = str(url)
        try:
            self._info = conninfo.conninfo_to_dict(url)
            secret = any(name in SECRETS for name in self._info)
        except psycopg.Error as error:
            wanted = "an address such as postgresql://user@host:5432/name"
            raise InvalidInput.must("journal", "superarm", wanted, redacted(url)) from error
        if secret:
            wanted = "without a password: put it into PGPASSWORD, or into a file that PGPASSFILE names"
            raise InvalidInput.must("journal", "superarm", wanted, redacted(url))
        self.statement_timeout = statement_timeout
        self._text = redacted(url)

    def __str__(self) -> str:
        return self._text

    def connect(self, application: str = "superarm", *, statement_timeout: float | None = None) -> Connection:
        """Return a connection of its own; each statement commits by itself. A ``statement_timeout`` of 0 is none."""
        wait = self.statement_timeout if statement_timeout is None else statement_timeout
        with database_errors(self):
            connection = Connection.connect(
                **self._options(application, wait), autocommit=True, prepare_threshold=1
            )
        connection.statement_timeout = wait or None
        return connection

    def _options(self, application: str, seconds: float) -> JsonObject:
        wait = int(1e3 * seconds)
        # what the role or the database has for these would end statements that have time left
        timeouts = (
            f"-c statement_timeout={wait} -c lock_timeout=0 -c idle_in_transaction_session_timeout={wait}"
        )
        user_options = self._info.get("options", "")
        # UTF-8, whatever encoding the environment or the database has
        options = {**OPTIONS, **self._info, "application_name": application, "client_encoding": "UTF8"}
        # no statement here is worth compiling, though estimates of rows may say so before ANALYZE has run
        return options | {"options": f"{user_options} {timeouts} -c jit=off -c search_path=superarm".strip()}


def unavailable_error(address: object, error: BaseException) -> JournalUnavailable:
    """Return the JournalUnavailable for an error of the database: its first line, without secrets."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = re.sub(r"password\s*=\s*\S+", "password=…", lines[0])
    secret = os.environ.get("PGPASSWORD")
    if secret:
        line = line.replace(secret, "…")
    return JournalUnavailable(f"the database {address} cannot be used at the moment: {line}")


@contextmanager
def database_errors(address: object) -> Iterator[None]:
    """Raise JournalUnavailable, JournalFull or JournalMismatch in place of errors of psycopg."""
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        wanted = "a superarm journal (superarm serve with --labels makes one)"
        raise JournalMismatch.must("journal", "superarm", wanted, str(address)) from error
    except psycopg.errors.InsufficientPrivilege as error:
        reason = Unquoted(str(error).splitlines()[0])
        raise JournalMismatch.must(
            "role", "superarm", "one that may do this (docs/scale.md)", reason
        ) from error
    except psycopg.errors.DiskFull as error:
        raise JournalFull(str(unavailable_error(address, error))) from error
    except psycopg.Error as error:
        raise unavailable_error(address, error) from error
