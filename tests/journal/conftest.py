"""Journals to test, in a file and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

for part in ("msgspec", "orjson"):
    pytest.importorskip(part, reason=f"the journal's tests need {part}: pip install 'superarm[serve,dev]'")

from journal_kit import Driver  # noqa: E402
from postgres_kit import Database, running_database  # noqa: E402
from service_kit import LABELS, D  # noqa: E402


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A real PostgreSQL, that nobody kills."""
    yield from running_database(fsync=False)


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Opens (and at the end closes) services on files, driven by hand; by default on one with six labels."""
    opened = []

    def make(path: str | Path = "events.db", **options: Any) -> Driver:
        file = tmp_path / path
        known = file.exists() or "model" in options
        new = {} if known else {"labels": LABELS, "n_features": D, "set_size": 2}
        driver = Driver.open(file, **(new | options))
        opened.append(driver)
        return driver

    yield make
    for driver in opened:
        driver.store.close()
