"""A labelling in a real PostgreSQL."""

from __future__ import annotations

import json
import subprocess
import sys

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


def test_the_command_begins_and_goes_on_in_a_database(database, tmp_path):
    url, rows = database.fresh(), tmp_path / "tickets.jsonl"
    rows.write_text("".join(json.dumps(row | {"team": LABELS[i % 3]}) + "\n" for i, row in enumerate(ROWS)))
    command = [sys.executable, "-m", "superarm", "label", str(rows), "--answers", "team", "--target", "1"]
    for _ in range(2):
        done = subprocess.run(
            [*command, "--journal", url, "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["labelled"] == len(ROWS)
