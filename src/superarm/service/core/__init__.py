"""A learner behind a journal: sessions, events, snapshots, archives. No HTTP in here."""

from superarm.extras import need

need("serve")
