"""What has happened, as events in one order; and the Projector, which makes the model and the totals of them.

events.py      the kinds of events, and the chain of their digests; records.py: all events about one decision
store.py       JournalStore: append, read, look up by id, snapshot, erase; sqlite.py and postgres.py implement it,
               statements.py is the SQL of both, backends.py picks one by the address of the journal
projector.py   Projector: events in, model (learning.py) and totals (totals.py) out, for serving, replay and shadows
replay.py      the events applied again, and compared; verify.py, backup.py, export.py, move.py
create.py      what a new journal is made for, and its learner, if that is in a user's own file
changes.py     what an operator changes while a service runs
"""

import importlib.util

from superarm._extras import require_extra
from superarm.errors import SuperarmError

if importlib.util.find_spec("fcntl") is None:
    raise SuperarmError("a journal needs Linux or macOS: it locks files and syncs folders as Windows cannot")
require_extra("serve", "orjson")
