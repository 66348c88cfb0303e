"""Decisions and outcomes over HTTP, with a journal that loses nothing.

service.py   Service: batches of requests (commit_queue.py), each committed to a journal, then projected; no HTTP
batch.py     Batch: requests to events
messages.py  the bodies of requests and responses; requests.py takes the ones, views.py makes the others
upkeep.py    Upkeep: what is due by time: timeouts, erasures by age, snapshots
follower.py  JournalFollower: what the service decides with, projected from the journal; and how content is erased
routes.py    what each route does (openapi.py describes them); application.py has them as one, serve.py runs it
metrics.py   what Prometheus reads; dashboard.html is what people see
client/      the Python client (it needs no extra), and simulated users of it
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm.service.application import asgi
    from superarm.service.client.client import Client
    from superarm.service.messages import OutcomeRequest
    from superarm.service.requests import DecisionRequest
    from superarm.service.service import Service

_MODULE_OF = {
    "asgi": "application",
    "Client": "client.client",
    "DecisionRequest": "requests",
    "OutcomeRequest": "messages",
    "Service": "service",
}

__all__ = ["Client", "DecisionRequest", "OutcomeRequest", "Service", "asgi"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'superarm.service' has no attribute {name!r}")
    return getattr(importlib.import_module(f"superarm.service.{_MODULE_OF[name]}"), name)
