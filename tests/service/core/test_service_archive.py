"""Archives, replay and export: old events move to Parquet, and the same bits come out again."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from service_kit import LABELS, D, forge, forge_snapshot, rows, sha256_of

from superarm.decision import COLUMNS
from superarm.errors import InvalidInput
from superarm.service.core import archive as archive_module
from superarm.service.core.archive import Compaction, folder
from superarm.service.core.export import export
from superarm.service.core.faults import JournalDamaged
from superarm.service.core.replay import replay
from superarm.service.core.session import Ask, Reply, Session
from superarm.service.core.snapshots import learner_from, model_bytes

# ---------------------------------------------------------------- archives


def run_some(session, n, seed=0, answered=0.8):
    random = np.random.default_rng(seed)
    for x in rows(n, seed):
        entry = session.decide(Ask(x, context={"n": seed}))
        if random.random() < answered:
            session.outcome(Reply(entry.place.id, hit=bool(random.random() < 0.5)))
    session.commit()


def compact(session):
    work = Compaction(session.journal, session.keep_snapshots)
    if work:
        work.write()
        while work.step():
            session.commit()
        session.commit()


def filled(open_session, **options):
    session = open_session(keep_snapshots=2, **options)
    for seed in range(5):
        run_some(session, 60, seed)
        session.snapshot()
        session.commit()
    return session


def test_old_events_move_to_parquet_and_nothing_is_lost(open_session, tmp_path):
    session = filled(open_session)
    before = [(e.seq, e.time, e.kind, e.id, e.x, e.text) for e in session.journal.events()]
    export(session.journal, tmp_path / "before.jsonl")
    records = {e[3]: session.find(e[3]).full() for e in before}
    compact(session)
    kept = session.journal.snapshots()
    assert len(kept) == 3  # the first one, and the newest two
    assert kept[0] == 0
    count, oldest = session.journal.reader.execute("SELECT count(*), min(seq) FROM events").fetchone()
    assert oldest == kept[1] + 1
    assert count == session.journal.seq - kept[1]
    assert [f.name for f in folder(session.journal.path).iterdir()] == [f"{1:012d}-{kept[1]:012d}.parquet"]
    after = [(e.seq, e.time, e.kind, e.id, e.x, e.text) for e in session.journal.events()]
    assert after == before
    export(session.journal, tmp_path / "after.jsonl")
    assert (tmp_path / "after.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()
    assert {e[3]: session.find(e[3]).full() for e in before} == records
    assert not Compaction(session.journal, 2)
    # from the oldest kept snapshot, and from the very start: the same bits
    near, far = replay(session.journal), replay(session.journal, from_start=True)
    assert (near.start, far.start) == (kept[1], 0)
    assert near.sha256 == far.sha256 == sha256_of(session)
    assert (near.same, far.same) == (True, True)
    assert near.checked == (kept[2],)


def test_an_archived_decision_can_still_be_answered(open_session, tmp_path):
    session = filled(open_session)
    compact(session)
    archived = session.journal.archived()
    place = next(p for p in session.journal.open_places(limit=10) if p.seq <= archived)
    session._entries.clear()
    assert session.outcome(Reply(place.id, hit=True)).outcome["learnt"]
    session.commit()
    session.journal.close()
    again = open_session()
    assert again.find(place.id).outcome["hit"] is True
    assert replay(again.journal, from_start=True).sha256 == sha256_of(again)


def test_a_crash_in_the_middle_of_a_compaction_does_no_harm(open_session, monkeypatch):
    monkeypatch.setattr(archive_module, "DELETE_AT_ONCE", 50)
    session = filled(open_session)
    before = [e.text for e in session.journal.events()]
    expected = sha256_of(session)
    for steps in (0, 1, 3):  # after the file; after the journal knows it; in the middle of forgetting
        work = Compaction(session.journal, 2)
        assert work
        work.write()
        for _ in range(steps):
            work.step()
            session.commit()
        session.journal.close()
        session = open_session(keep_snapshots=2)
        assert [e.text for e in session.journal.events()] == before
        assert sha256_of(session) == expected
    compact(session)
    assert [e.text for e in session.journal.events()] == before
    assert (
        session.journal.reader.execute("SELECT min(seq) FROM events").fetchone()[0]
        > session.journal.archived()
    )


def test_keep_no_snapshots_means_never_compact(open_session):
    session = filled(open_session)
    assert not Compaction(session.journal, 0)
    assert not Compaction(session.journal, 99)


# ---------------------------------------------------------------- replay finds what is not the same


def test_an_event_that_was_changed_is_found_before_it_is_replayed(open_session):
    session = filled(open_session)
    session.journal.write("UPDATE events SET body = replace(body, '1', '2') WHERE seq = 7")
    session.commit()
    with pytest.raises(JournalDamaged, match=r"event 7 of journal .* is not what was written") as caught:
        replay(session.journal)
    assert caught.value.event == 7


def test_replay_tells_another_set_from_other_odds_from_last_bits(open_session):
    """Events that were forged with all their digests: only the replay itself can notice."""
    session = filled(open_session)
    one, two, three = (session.journal.event(p.seq) for p in session.journal.open_places(limit=3))
    others = [label for label in LABELS if label not in one.body["labels"]][:2]
    forge(session.journal, one.seq, labels=others, drawn=others)
    forge(session.journal, two.seq, log_propensity=two.body["log_propensity"] + 1e-3)
    forge(session.journal, three.seq, log_propensity=three.body["log_propensity"] + 1e-12)
    done = replay(session.journal)
    assert (done.sets, done.odds, done.bits) == (1, 1, 1)
    assert done.different == 3
    assert not done.same
    assert not done.sound


def test_replay_tells_rounding_from_damage_in_a_snapshot(open_session):
    session = filled(open_session)
    kept = session.journal.snapshots()
    for seq, factor in ((kept[-2], 1.0 + 1e-6), (kept[-1], 1.5)):
        learner = learner_from(session.journal.snapshot(seq).parts["model"])
        learner.state.weights.W[...] *= factor
        forge_snapshot(session.journal, seq, model_bytes(learner))
    done = replay(session.journal)
    assert (done.near, done.broken) == ((kept[-2],), (kept[-1],))
    assert not done.sound


def test_replay_notices_a_changed_outcome(open_session):
    session = filled(open_session)
    outcome = next(e for e in session.journal.events() if e.kind == 2)
    forge(session.journal, outcome.seq, taught={"hit": not outcome.body["taught"]["hit"]})
    assert replay(session.journal).broken


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.integers(0, 30), st.sampled_from([None, 1, 3]), st.booleans()),
        st.tuples(
            st.just("answer"), st.integers(0, 30), st.sampled_from([True, False, "label-0"]), st.none()
        ),
        st.tuples(st.sampled_from(["expire", "snapshot", "compact", "restart", "kill"]), *[st.none()] * 3),
    ),
    max_size=60,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, default=st.sampled_from([None, True, False]))
def test_whatever_happens_a_replay_gives_the_same_bits(tmp_path_factory, steps, default):
    path = tmp_path_factory.mktemp("any") / "events.db"
    clock = iter(range(1000, 10_000_000, 3)).__next__
    options = {"timeout": 60.0, "default": default, "keep_snapshots": 1, "clock": clock}
    session = Session.open(path, labels=LABELS, n_features=D, set_size=2, **options)
    xs = rows(31)
    for what, number, value, flag in steps:
        if what == "decide":
            eligible = ("label-0", "label-2", "label-4") if flag else None
            with suppress(ValueError):
                session.decide(Ask(xs[number], f"d{number}", eligible, value))
        elif what == "answer":
            answer = {"label": value} if isinstance(value, str) else {"hit": value}
            with suppress(ValueError):
                session.outcome(Reply(f"d{number}", **answer))
        elif what == "expire":
            session.commit()
            session.expire()
        elif what == "snapshot":
            session.snapshot()
        elif what == "compact":
            session.commit()
            compact(session)
        else:
            session.commit()
            if what == "restart":
                session.close()
            else:
                session.journal.close()
            session = Session.open(path, **options)
    session.commit()
    totals, live = session.stats.to_dict(), sha256_of(session)
    for from_start in (False, True):
        done = replay(session.journal, from_start=from_start)
        assert done.same
        assert done.sha256 == live
    session.journal.close()
    again = Session.open(path, **options)
    assert again.stats.to_dict() == totals
    times = [event.time for event in again.journal.events()]
    assert all(a <= b for a, b in pairwise(times))
    again.journal.close()


# ---------------------------------------------------------------- export


def test_export_has_all_that_evaluation_needs(open_session, tmp_path):
    session = open_session()
    session.decide(Ask(rows(1)[0], "a", context={"page": "/home"}))
    session.outcome(Reply("a", hit=True))
    session.decide(Ask(rows(2)[1], "b", eligible=("label-1", "label-3", "label-4")))
    session.decide(Ask(rows(3)[2], "c", set_size=1))
    session.outcome(Reply("c", label="label-2"))
    session.commit()
    assert export(session.journal, tmp_path / "log.parquet") == 3
    table = pl.read_parquet(tmp_path / "log.parquet")
    assert table.columns == list(COLUMNS)
    a, b, c = table.to_dicts()
    made = session.find("a").decision
    assert a["x"] == rows(1)[0].tolist()
    assert (a["labels"], a["drawn"], a["top"]) == (made.labels, made.drawn, made.top)
    assert (a["propensity"], a["ordered_propensity"]) == (made.propensity, made.ordered_propensity)
    assert (a["hit"], a["label"], a["context"]) == (True, None, '{"page": "/home"}')
    assert (b["hit"], b["eligible"], b["context"]) == (None, ["label-1", "label-3", "label-4"], None)
    assert (c["hit"], c["label"], c["set_size"]) == ("label-2" in c["labels"], "label-2", 1)
    export(session.journal, tmp_path / "log.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [list(line) for line in lines] == [list(COLUMNS)] * 3
    assert [line["propensity"] for line in lines] == table["propensity"].to_list()


def test_export_of_sparse_rows_and_of_nothing(open_session, tmp_path):
    session = open_session()
    assert export(session.journal, tmp_path / "none.parquet") == 0
    session.decide(Ask((np.array([1, 3], np.int32), np.array([0.5, 2.0], np.float32))))
    session.commit()
    export(session.journal, tmp_path / "log.parquet")
    row = pl.read_parquet(tmp_path / "log.parquet").to_dicts()[0]
    assert (row["x_indices"], row["x_values"]) == ([1, 3], [0.5, 2.0])
    with pytest.raises(InvalidInput, match=r"ends in one of \.parquet, \.jsonl"):
        export(session.journal, tmp_path / "log.txt")


def test_the_default_outcome_of_a_timeout_is_nobodys_answer(open_session, tmp_path):
    session = open_session(timeout=0.001, default=False)
    session.decide(Ask(rows(1)[0], "a"))
    session.commit()
    time.sleep(0.01)
    session.expire()
    session.commit()
    export(session.journal, tmp_path / "log.jsonl")
    assert json.loads((tmp_path / "log.jsonl").read_text())["hit"] is None
