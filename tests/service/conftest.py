"""Services to test: in a thread of this process (`live`), or in processes that can be killed (`nursery`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

for part in ("fastapi", "uvicorn", "orjson"):
    pytest.importorskip(part, reason=f"the service's tests need {part}: pip install 'superarm[serve,dev]'")

from service_kit import LABELS, D, Nursery, Web, free_port  # noqa: E402

from superarm.service.core.session import Session  # noqa: E402


@pytest.fixture
def open_session(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Opens (and at the end closes) sessions, by default on one journal with six labels."""
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


@pytest.fixture
def live(open_session: Callable[..., Session]) -> Iterator[Callable[..., Web]]:
    """Starts a whole service in a thread of this process, and stops it gracefully at the end."""
    import uvicorn

    from superarm.service.http.app import make_app

    running = []

    def start(session: Session | None = None, *, token: str | None = None, **limits: Any) -> Web:
        session = session or open_session()
        port = free_port()
        app = make_app(lambda: session, token=token, **limits)
        config = uvicorn.Config(app, port=port, log_config=None, access_log=False, ws="none", lifespan="on")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        web = Web(port, token).wait()
        web.stop = lambda: (setattr(server, "should_exit", True), thread.join())  # type: ignore[attr-defined]
        return web

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()
