"""A labelling in a real PostgreSQL."""

from __future__ import annotations

import pytest

import superarm as sa
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalForeign
from superarm.label.journal import erase_person
from superarm.service import Service

ROWS = [
    {"text": text} for text in ("charged twice", "cannot log in", "parcel lost", "wrong invoice", "my parcel")
]
LABELS = ["billing", "login", "delivery"]


def test_clicks_are_kept_and_found_again(database):
    url = database.fresh()
    with sa.Labelling(ROWS, labels=LABELS, target=1.0, journal=url) as job:
        for label in ("billing", "login", "delivery"):
            question = job.ask("ann")
            job.answer(question, label=label, by="ann")
        job.undo("ann")
        before = job.results()
    with sa.Labelling(ROWS, target=1.0, journal=url) as job:
        assert job.results() == before
        assert job.progress().clicks == 3
        assert sum(one["label"] is not None for one in before) == 2
    with pytest.raises(InvalidInput, match="a file"):
        erase_person(url, "ann")
    with pytest.raises(JournalForeign, match="labelling"):
        Service.open(url)
