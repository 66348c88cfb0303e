"""A real PostgreSQL for the tests: from a temporary folder, over a Unix socket, as an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

__all__ = ["Database", "database_name", "grants_in_docs", "running_database"]

SETTINGS = """
listen_addresses = ''
max_connections = 120
shared_buffers = 32MB
max_wal_size = 128MB
recovery_init_sync_method = syncfs
log_min_messages = warning
"""


def binaries() -> Path | None:
    """Where initdb and postgres are: Debian keeps them off the path."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    return next((path for path in found if (path / "initdb").exists() and (path / "postgres").exists()), None)


def why_not() -> str | None:
    """Why the tests of PostgreSQL cannot run here; None if they can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "these tests need psycopg: pip install 'superarm[postgres]'"
    if binaries() is None:
        return "these tests start a real PostgreSQL, and there is none here: apt-get install postgresql"
    return None


def running_database(**options: bool) -> Iterator[Database]:
    """Yield a `Database`, for a fixture; or skip the test, in words that say what is missing."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    database = Database(**options)
    yield database
    database.close()


def database_name(url: str) -> str:
    """Return the name of the database in an address."""
    return urlsplit(url).path.strip("/")


class Database:
    """One server; `fresh` makes a database in it.

    Args:
        fsync: whether a commit waits for the disk. Without a power cut none of the tests can tell.
        memory: keep its files in memory, where there is room: on a busy disk a start takes seconds.
    """

    def __init__(self, *, fsync: bool = True, memory: bool = True) -> None:
        bin_ = binaries()
        assert bin_ is not None
        self.bin = bin_
        # a socket's path may have 107 characters: the tests' own folders are longer
        shm = Path("/dev/shm")
        roomy = memory and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 1 << 30
        self.folder = Path(tempfile.mkdtemp(prefix="superarm-pg-", dir=shm if roomy else "/tmp"))
        self.user: str | None = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.user = "postgres" if _exists("postgres") else "nobody"
            shutil.chown(self.folder, self.user)
        self._run(
            "initdb", "-D", "data", "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"
        )
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(
                SETTINGS + f"unix_socket_directories = '{self.folder}'\nfsync = {'on' if fsync else 'off'}\n"
            )
        self.process: subprocess.Popen[bytes] | None = None
        self._count = 0
        self.start()

    def _run(self, command: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.bin / command, *arguments], cwd=self.folder, user=self.user, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", "data"], cwd=self.folder, user=self.user, stdout=log, stderr=log
            )
        until = time.monotonic() + 20.0
        while True:
            try:
                self.connect("postgres").close()
                return
            except Exception:
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.02)

    def connect(self, name: str = "postgres", user: str = "owner") -> Any:
        import psycopg

        return psycopg.connect(host=str(self.folder), dbname=name, user=user, autocommit=True)

    def address(self, name: str, user: str = "owner") -> str:
        return f"postgresql://{user}@/{name}?host={self.folder}"

    def fresh(self) -> str:
        """The address of a new, empty database."""
        self._count += 1
        name = f"db{self._count}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def kill(self) -> None:
        """As a power cut would: every process of it, at once, and then the server is gone."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)  # the postmaster ends its children without a shutdown
        self.process.wait(20)

    def stop(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # "fast": ends connections
            self.process.wait(20)

    def pause(self) -> None:
        """Stop all of its processes where they are; `resume` lets them go on.

        The postmaster first, so that it starts no more; and until the system says that each has stopped: what
        it lists of children may miss one while another ends.
        """
        until = time.monotonic() + 20.0
        while running := [pid for pid in self._processes() if not _stopped(pid)]:
            assert time.monotonic() < until, running
            _signal(running[:1], signal.SIGSTOP)

    def resume(self) -> None:
        _signal(self._processes(), signal.SIGCONT)

    def _processes(self) -> list[int]:
        assert self.process is not None
        pid = self.process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _signal(pids: list[int], which: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, which)


def _stopped(pid: int) -> bool:
    """Whether it runs no more: stopped ("T"), or a zombie, or gone."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "TZX"


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def grants_in_docs(role: str) -> str:
    """The SQL of docs/scale.md: what a process that serves may do."""
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    return page.split("```sql\n")[2].partition("```")[0].replace("TO serve", f"TO {role}")
