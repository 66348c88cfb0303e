"""Sets over HTTP, answers whenever they come, and nothing lost.

core/     a learner behind a journal (session), its events, snapshots and archives; no HTTP in it
http/     what each route does, who is let in, metrics, the dashboard
client/   the Python client (it needs no extra), and simulated users of it
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.service.client.client import Client
    from superarm.service.core.session import Ask, Reply, Session

_HOME_OF = {
    "Ask": "core.session",
    "Reply": "core.session",
    "Session": "core.session",
    "Client": "client.client",
}

__all__ = ["Ask", "Client", "Reply", "Session"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'superarm.service' has no attribute {name!r}")
    return getattr(importlib.import_module(f"superarm.service.{_HOME_OF[name]}"), name)
