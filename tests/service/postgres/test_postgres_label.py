"""A labelling in a real PostgreSQL."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

import superarm as sa
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalLocked, JournalMismatch
from superarm.label.erase import erase_person
from superarm.label.labelling_journal import LabellingJournal
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
        assert job.progress().clicks == 2  # one was taken back
        assert sum(one["label"] is not None for one in before) == 2
        with sa.Labelling(ROWS, target=1.0, journal=url, read_only=True) as reader:
            assert reader.results() == before
        with pytest.raises(JournalLocked, match="which another one has"):
            sa.Labelling(ROWS, target=1.0, journal=url)
        [(pid,)] = job.journal.store._select("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
        job.journal.store._select("SELECT pg_terminate_backend(?)", (pid,))
        time.sleep(0.5)
        with sa.Labelling(ROWS, target=1.0, journal=url), pytest.raises(JournalLocked, match="another one"):
            job.answer(job.ask("ann"), label="billing", by="ann")  # its lock is gone, and another has it
        job.answer(job.ask("ann"), label="billing", by="ann")
    with pytest.raises(InvalidInput, match="a file"):
        erase_person(url, "ann")
    with pytest.raises(JournalMismatch, match="labelling"):
        Service.open(url)


def test_the_command_begins_and_goes_on_in_a_database(database, tmp_path):
    url, rows = database.fresh(), tmp_path / "tickets.jsonl"
    rows.write_text("".join(json.dumps(row | {"team": LABELS[i % 3]}) + "\n" for i, row in enumerate(ROWS)))
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(LABELS))
    command = [
        sys.executable,
        "-m",
        "superarm",
        "label",
        str(rows),
        "--labels",
        str(labels),
        "--journal",
        url,
    ]
    for _ in range(2):
        with subprocess.Popen(
            [*command, "--leave-out", "team", "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as page:
            assert page.stdout is not None
            address = page.stdout.readline()
            page.send_signal(signal.SIGINT)
            output = page.communicate(timeout=60)[1]
        assert address.startswith("http://127.0.0.1:"), output
        assert f"0 of {len(ROWS)} labelled" in output
    with LabellingJournal(url, read_only=True) as journal:
        assert journal.saved_settings is not None
        assert journal.saved_settings.labels == LABELS
