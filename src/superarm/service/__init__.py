"""Sets over HTTP, answers whenever they come, and nothing lost.

session.py    a learner behind a journal: decide, outcome, expire; no HTTP in it
journal.py    the SQLite file: events, snapshots, one holder; archive.py moves old events to Parquet
replay.py     the same bits again, from the journal alone; export.py writes the decision log
group.py      requests that arrive together are committed together
routes.py     what each route does; gate.py lets requests in; app.py documents them (FastAPI)
client.py     the Python client (it needs no extra); traffic.py simulates users with it
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.service.client import Client
    from superarm.service.session import Ask, Reply, Session

_HOME_OF = {"Ask": "session", "Reply": "session", "Session": "session", "Client": "client"}

__all__ = ["Ask", "Client", "Reply", "Session"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'superarm.service' has no attribute {name!r}")
    return getattr(importlib.import_module(f"superarm.service.{_HOME_OF[name]}"), name)
