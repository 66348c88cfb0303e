"""A small journal of each released format is read for ever. (tests/service/make_journal.py made them)"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from superarm.logs import Log
from superarm.service.core.export import export
from superarm.service.core.journal import open_journal
from superarm.service.core.migrate import migrate
from superarm.service.core.session import Ask, Reply, Session
from superarm.service.core.verify import verify

JOURNALS = sorted((Path(__file__).parents[1] / "journals").glob("*.db"))


@pytest.fixture(params=JOURNALS, ids=lambda path: path.stem)
def journal(request, tmp_path):
    for file in request.param.parent.glob(f"{request.param.name}*"):
        (shutil.copytree if file.is_dir() else shutil.copy)(file, tmp_path / file.name)
    return tmp_path / request.param.name


def test_there_is_a_journal_of_every_released_format():
    assert [path.stem for path in JOURNALS] == ["format-2"]


def test_a_journal_of_a_released_format_is_read_and_goes_on(journal, tmp_path):
    migrate(journal)
    found = verify(journal)
    assert found.sound, found.problems
    assert (found.events, found.erased, found.archives) == (53, 1, 1)
    looking = open_journal(journal, read_only=True)
    assert export(looking, tmp_path / "log.jsonl") == 29
    looking.close()
    rows = list(Log(tmp_path / "log.jsonl"))
    assert sum(row.hit is not None for row in rows) == 19
    session = Session.open(journal, create=False)
    assert session.labels[-1] == "new"
    assert session.retired == {"label-5"}
    assert [change["what"] for change in session.changes()] == ["add_labels", "retire_labels", "erase"]
    assert session.find("d3").full()["context"] == {"n": 3}
    session.outcome(Reply("d3", hit=True))
    session.decide(Ask([0.0] * 5, "more"))
    session.close()
    assert verify(journal).sound
