"""Services to test: in a thread of this process (`live`), or in processes that can be killed (`nursery`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

for part in ("httptools", "msgspec", "orjson"):
    pytest.importorskip(part, reason=f"the service's tests need {part}: pip install 'superarm[serve,dev]'")

from postgres_kit import Database, why_not  # noqa: E402
from service_kit import LABELS, D, Nursery, Web  # noqa: E402

import superarm as sa  # noqa: E402
from superarm.rows import SparseRow  # noqa: E402
from superarm.service.core.session import Session  # noqa: E402
from superarm.service.http.admission import Tokens  # noqa: E402
from superarm.service.http.server import Listener, run  # noqa: E402
from superarm.service.http.wire import Limits  # noqa: E402


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A real PostgreSQL, that nobody kills; or words that say what is missing."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    made = Database(fsync=False)
    yield made
    made.close()


@pytest.fixture
def shared(database: Database) -> Iterator[Callable[..., Any]]:
    """Opens (and at the end closes) processes' sessions on a shared journal: by default all on one."""
    from superarm.service.core.postgres.session import SharedSession

    urls: dict[str, str] = {}
    opened: list[Any] = []

    def make(path: str | Path = "events.db", **options: Any) -> Any:
        new = {} if str(path) in urls else {"labels": LABELS, "n_features": D, "set_size": 2}
        url = urls.setdefault(str(path), database.fresh())
        session = SharedSession.open(url, **({"lease": 1.0, "every": 0.02} | new | options))
        session.url = url
        opened.append(session)
        return session

    yield make
    for session in opened:
        session.close()


@pytest.fixture
def open_session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens (and at the end closes) sessions, by default on one journal with six labels.

    `service_kit.both` runs a test twice: on a SQLite file, and on PostgreSQL.
    """
    if getattr(request, "param", "sqlite") == "postgresql":
        yield request.getfixturevalue("shared")
        return
    opened = []

    def make(path: str | Path = "events.db", **options: Any) -> Session:
        file = tmp_path / path
        new = (
            {} if file.exists() or "model" in options else {"labels": LABELS, "n_features": D, "set_size": 2}
        )
        session = Session.open(file, **(new | options))
        opened.append(session)
        return session

    yield make
    for session in opened:
        session.journal.close()


@pytest.fixture(scope="session")
def compiled() -> None:
    """What the first request would have to wait for, longer than a client waits."""
    sparse = SparseRow(np.array([0], np.int32), np.array([1.0], np.float32), D)
    for x in (np.zeros(D), sparse):
        learner = sa.SetLogit(labels=LABELS, n_features=D, set_size=2)
        learner.update(learner.decide(x), hit=True)


@pytest.fixture
def live(open_session: Callable[..., Session], compiled: None) -> Iterator[Callable[..., Web]]:
    """Starts a whole service in a thread of this process, and stops it gracefully at the end."""
    stops = []

    def start(
        session: Session | None = None,
        *,
        token: str | None = None,
        tokens: Tokens | None = None,
        **options: Any,
    ) -> Web:
        session = session or open_session()
        listener = options.pop("listener", Listener(port=0))
        rate = options.pop("rate", 10_000.0)
        ready: Future[tuple[Any, ...]] = Future()

        async def main() -> None:
            stop = asyncio.Event()
            told = asyncio.get_running_loop(), stop
            await run(
                lambda: session,
                listener,
                tokens or Tokens(single=token),
                Limits(**options),
                rate=rate,
                stop=stop,
                on_ready=lambda wire: ready.set_result((wire, *told)),
            )

        def work() -> None:
            try:
                asyncio.run(main())
            except BaseException as error:
                if ready.done():
                    raise
                ready.set_exception(error)

        thread = threading.Thread(target=work)
        thread.start()
        wire, loop, stop = ready.result(20)

        def end() -> None:
            if thread.is_alive():
                loop.call_soon_threadsafe(stop.set)
            thread.join()

        stops.append(end)
        web = Web(0 if listener.unix_socket else wire.port, token)
        web.stop, web.wire = end, wire  # type: ignore[attr-defined]
        return web

    yield start
    for end in stops:
        end()


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()
