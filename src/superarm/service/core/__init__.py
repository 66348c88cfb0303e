"""A learner behind a journal: sessions, events, snapshots, archives. No HTTP in here."""
