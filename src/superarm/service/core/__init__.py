"""A learner behind a journal: sessions, events, snapshots, archives. No HTTP in here."""

import importlib.util

from superarm.errors import SuperarmError
from superarm.extras import need

if importlib.util.find_spec("fcntl") is None:
    raise SuperarmError(
        "the service's journal needs Linux or macOS: it locks files and syncs folders as Windows cannot"
    )
need("serve")
