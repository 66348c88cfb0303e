"""Services to test: in a thread of this process (`live`), or in processes that can be killed (`fork_server`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

for part in ("httptools", "msgspec", "orjson", "prometheus_client", "uvicorn"):
    pytest.importorskip(part, reason=f"the service's tests need {part}: pip install 'superarm[serve,dev]'")

from live_service import live  # noqa: E402, F401
from postgres_kit import Database, running_database  # noqa: E402
from service_kit import LABELS, D, ForkServer  # noqa: E402

from superarm.service import Service  # noqa: E402

NEW = {"labels": LABELS, "n_features": D, "set_size": 2}


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A real PostgreSQL, that nobody kills."""
    yield from running_database(fsync=False)


@pytest.fixture
def shared(database: Database) -> Iterator[Callable[..., Any]]:
    """Opens (and at the end closes) the services of several processes on one journal in PostgreSQL.

    A name stands for another journal, as it does for a file.
    """
    urls: dict[str, str] = {}
    opened = []

    def make(path: str = "events.db", **options: Any) -> Service:
        new = {} if path in urls else NEW
        url = urls.setdefault(path, make.url if path == "events.db" else database.fresh())
        service = Service.open(url, **(new | options))
        opened.append(service)
        return service

    make.url = database.fresh()
    yield make
    for service in opened:
        service.close()


@pytest.fixture
def open_service(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens (and at the end closes) services, by default on one journal with six labels.

    `service_kit.both` runs a test twice: on a SQLite file, and on PostgreSQL.
    """
    if getattr(request, "param", "sqlite") == "postgresql":
        yield request.getfixturevalue("shared")
        return
    opened = []

    def make(path: str | Path = "events.db", **options: Any) -> Service:
        file = tmp_path / path
        new = {} if file.exists() or "model" in options else NEW
        service = Service.open(file, **(new | options))
        opened.append(service)
        return service

    yield make
    for service in opened:
        service.store.close()


@pytest.fixture(scope="module")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    made = ForkServer(tmp_path_factory.mktemp("fork_server"))
    yield made
    made.close()
