"""A small journal of each released format is read for ever. (make_journal.py made them)"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from journal_kit import Driver

from superarm.journal.backends import open_store
from superarm.journal.export import export
from superarm.journal.verify import verify
from superarm.logs import Log
from superarm.service import DecisionRequest, OutcomeRequest

JOURNALS = sorted((Path(__file__).parent / "journals").glob("*.db"))


@pytest.fixture(params=JOURNALS, ids=lambda path: path.stem)
def journal(request, tmp_path):
    for file in request.param.parent.glob(f"{request.param.name}*"):
        shutil.copy(file, tmp_path / file.name)
    return tmp_path / request.param.name


def test_there_is_a_journal_of_every_released_format():
    assert [path.stem for path in JOURNALS] == ["format-4"]


def test_a_journal_of_a_released_format_is_read_and_goes_on(journal, tmp_path):
    result = verify(journal)
    assert result.ok, result.problems
    assert (result.events, result.erased) == (56, 1)
    looking = open_store(journal, read_only=True)
    assert export(looking, tmp_path / "log.jsonl") == (32, 1)
    looking.close()
    rows = list(Log(tmp_path / "log.jsonl"))
    assert sum(row.hit is not None for row in rows) == 19
    driver = Driver.open(journal, create=False)
    assert {row.decision.learner for row in rows} == {driver.learner.id}  # as `Writer` has it; not a spec
    assert driver.labels[-1] == "new"
    assert driver.disabled == {"label-5"}
    assert [change["what"] for change in driver.changes()] == ["add_labels", "disable_labels", "erase"]
    assert driver.find("d3").full()["context"] == {"n": 3}
    driver.outcome(OutcomeRequest("d3", hit=True))
    driver.decide(DecisionRequest([0.0] * 5, "more"))
    driver.close()
    assert verify(journal).ok
