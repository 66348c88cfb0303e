"""Facts, in one order, kept: what happened outside; and one function that makes a model of them.

events.py      the kinds of events, and the chain of their digests
store.py       JournalStore: append, read on, look up by id, snapshot, erase; sqlite.py and postgres.py implement it,
               backends.py picks one by the address of the journal
projector.py   Projector: events in, model and totals.py out; the same lines for serving, learning, replay, shadows
replay.py      a journal's past, done again and compared; verify.py, backup.py, export.py, move.py
changes.py     what an operator changes while a service runs
"""

import importlib.util

from superarm._extras import require_extra
from superarm.errors import SuperarmError

if importlib.util.find_spec("fcntl") is None:
    raise SuperarmError("a journal needs Linux or macOS: it locks files and syncs folders as Windows cannot")
require_extra("serve", "orjson")
