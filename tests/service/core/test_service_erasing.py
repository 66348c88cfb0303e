"""Forgetting people: features and context are nowhere any more, and what remains still verifies."""

from __future__ import annotations

import numpy as np
import pytest
from service_kit import Clock, rows, sha256_of

from superarm.service.core.archive import Compaction
from superarm.service.core.export import export
from superarm.service.core.faults import Erased, UnknownDecision
from superarm.service.core.replay import replay
from superarm.service.core.session import Ask, Reply
from superarm.service.core.verify import verify

SECRET = np.array([0.12345, 6.789, -3.25, 1.5, 77.125], np.float32)
WORD = "a-name-that-nobody-may-keep"


def fill(session, n, seed=0, answered=True):
    for i, x in enumerate(rows(n, seed)):
        entry = session.decide(Ask(x, f"{seed}.{i}", context={"n": i}))
        if answered:
            session.outcome(Reply(entry.place.id, hit=i % 2 == 0))
    session.commit()


def compact(session):
    session.snapshot()
    session.commit()
    work = Compaction(session.journal, session.keep_snapshots)
    if work:
        work.write()
        while work.step():
            session.commit()
        session.commit()


def nowhere(folder):
    found = [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and (SECRET.tobytes() in file.read_bytes() or WORD.encode() in file.read_bytes())
    ]
    assert found == []


@pytest.mark.parametrize("where", ["fresh", "indexed", "archived", "open"])
def test_an_erased_decision_is_in_no_file_and_the_rest_verifies(open_session, tmp_path, where):
    session = open_session(keep_snapshots=1)
    fill(session, 150)
    session.decide(Ask(SECRET, "person", context={"name": WORD}))
    if where != "open":
        session.outcome(Reply("person", hit=True))
    session.commit()
    fill(session, 150, 1)
    if where in ("indexed", "archived"):
        compact(session)
        assert (session.journal.archived() > 0) == (where != "fresh")
    before = session.model_file()
    assert session.erase(ids=["person"]) == 1
    nowhere(tmp_path)
    entry = session.find("person")
    told = entry.full()
    assert (told["features"], told["context"], told["erased"]) == (None, None, True)
    assert told["labels"]  # what was shown is still known
    assert session.model_file() == before  # what was learnt stays
    with pytest.raises(Erased):
        session.decide(Ask(SECRET, "person", context={"name": WORD}))
    assert session.erase(ids=["person"]) == 0
    if where == "open":
        outcome = session.outcome(Reply("person", hit=True)).outcome
        assert (outcome["hit"], outcome["learnt"]) == (True, False)
    fill(session, 20, 2)
    session.commit()
    for from_start in (False, True):
        done = replay(session.journal, from_start=from_start)
        assert done.same
        assert done.sha256 == sha256_of(session)
    assert replay(session.journal, from_start=True).jumps
    found = verify(session.journal.path)
    assert found.sound, found.problems
    assert found.erased == 1
    model = session.model_file()
    session.journal.close()
    session = open_session(keep_snapshots=1)
    assert session.model_file() == model
    nowhere(tmp_path)
    export(session.journal, tmp_path / "log.jsonl")
    assert '"person"' not in (tmp_path / "log.jsonl").read_text()
    assert [change["what"] for change in session.changes()] == ["erase"]


def test_everything_older_than_a_time(open_session, tmp_path):
    clock = Clock()
    session = open_session(keep_snapshots=1, clock=clock)
    for seed in range(4):
        fill(session, 120, seed)
        compact(session)
        clock.now += 1000.0
    assert session.erase(before=clock.now - 2500.0) == 240
    assert session.erase(before=clock.now - 2500.0) == 0
    gone = [event.id for event in session.journal.events() if event.erased]
    assert len(gone) == 240
    assert {name.split(".")[0] for name in gone} == {"0", "1"}
    assert verify(session.journal.path).sound
    fill(session, 10, 9)
    assert replay(session.journal, from_start=True).same
    assert session.find("2.7").full()["context"] == {"n": 7}


def test_a_snapshot_that_stands_too_near_tells_a_row_and_goes(open_session):
    session = open_session()
    fill(session, 200)
    session.snapshot()
    session.commit()
    before = session.journal.seq
    session.decide(Ask(SECRET, "person"))
    session.outcome(Reply("person", hit=True))
    session.snapshot()  # the difference of the two is this one row
    session.commit()
    near = session.journal.seq
    fill(session, 200, 1)
    session.erase(ids=["person"])
    kept = session.journal.snapshots()
    assert before in kept
    assert near not in kept
    assert replay(session.journal).same


def test_nobody_of_that_name(open_session):
    session = open_session()
    with pytest.raises(UnknownDecision):
        session.erase(ids=["nobody"])


def test_retention_while_it_runs(open_session, tmp_path):
    """In turns, beside requests; see upkeep.py."""
    import asyncio

    from superarm.service.core.group import Group
    from superarm.service.core.upkeep import Upkeep

    clock = Clock()
    session = open_session(keep_snapshots=1, snapshot_every=100, retain=500.0, clock=clock, steady=Clock())
    session.decide(Ask(SECRET, "person", context={"name": WORD}))
    session.outcome(Reply("person", hit=True))
    fill(session, 120)
    clock.now += 1000.0

    async def main():
        group = Group(session)
        upkeep = Upkeep(group)
        task = asyncio.create_task(upkeep.run())
        for i, x in enumerate(rows(100, 5)):
            await group.submit(session.decide, Ask(x, f"new{i}"))
        while not session.find("person").erased:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await group.close()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert session.health().upkeep_failures == 0
    assert not session.find("new5").erased
    nowhere(tmp_path)
    assert verify(session.journal.path).sound
