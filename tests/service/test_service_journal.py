"""The journal: one holder, foreign files, full and read-only disks, archives, replay."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from service_kit import LABELS, D, rows

from superarm.errors import InvalidInput
from superarm.service import archive as archive_module
from superarm.service.archive import Compaction, folder
from superarm.service.export import export
from superarm.service.faults import JournalDown, JournalForeign, JournalHeld
from superarm.service.journal import Journal
from superarm.service.replay import replay
from superarm.service.session import Ask, Reply, Session

# ---------------------------------------------------------------- one holder


def test_the_second_process_refuses_and_says_who_holds_it(open_session, tmp_path):
    open_session()
    code = "import sys; from superarm.service.session import Session; Session.open(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "events.db"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "JournalHeld: journal of superarm must be held by no other process" in done.stderr
    assert f"held by process {os.getpid()} on " in done.stderr


def test_the_lock_ends_with_its_holder(open_session):
    session = open_session()
    with pytest.raises(JournalHeld):
        open_session()
    session.close()
    open_session()


def test_looking_needs_no_lock(open_session, tmp_path):
    session = open_session()
    session.decide(Ask(rows(1)[0]))
    session.commit()
    looking = Journal(tmp_path / "events.db", read_only=True)
    assert looking.seq == 1
    looking.close()


# ---------------------------------------------------------------- foreign files


@pytest.mark.parametrize("content", [b"this is no database, but a text" * 100, b""])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises((JournalForeign, JournalDown)):
        Journal(tmp_path / "x.db", read_only=True)


def test_another_database_is_refused(tmp_path):
    other = sqlite3.connect(tmp_path / "x.db")
    other.execute("CREATE TABLE cats (name)")
    other.commit()
    other.close()
    with pytest.raises(JournalForeign, match="a superarm journal"):
        Journal(tmp_path / "x.db")


def test_a_newer_format_is_refused(open_session, tmp_path):
    open_session().close()
    file = sqlite3.connect(tmp_path / "events.db")
    file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(JournalForeign, match="install a newer superarm"):
        Journal(tmp_path / "events.db")


def test_a_missing_or_empty_journal_cannot_be_replayed(tmp_path):
    with pytest.raises(JournalForeign, match="an existing file"):
        Journal(tmp_path / "none.db", read_only=True)
    journal = Journal(tmp_path / "new.db")
    with pytest.raises(JournalForeign, match="no service has started on it"):
        replay(journal)
    journal.close()


# ---------------------------------------------------------------- durability


def test_commits_wait_for_the_disk(open_session):
    session = open_session()
    assert session.journal.writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert session.journal.writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def fill_until_down(session, most=100_000):
    """Decide until the journal refuses; the ids that were acknowledged."""
    kept = []
    for _ in range(most):
        try:
            entry = session.decide(Ask(rows(1)[0], context="x" * 2000))
            session.commit()
        except JournalDown as error:
            return kept, error
        kept.append(entry.place.id)
    raise AssertionError("it never filled up")


def test_a_full_journal_refuses_keeps_serving_and_recovers(open_session):
    session = open_session(max_mb=1)
    kept, error = fill_until_down(session)
    assert error.status == 507
    assert len(kept) > 50
    assert session.down is error
    # what is there can be looked at, and asked for again
    assert session.find(kept[-1]) is not None
    again = session.decide(Ask(rows(1)[0], id=kept[0], context="x" * 2000))
    assert again.place.id == kept[0]
    with pytest.raises(JournalDown):
        session.decide(Ask(rows(1)[0]))
    with pytest.raises(JournalDown):
        session.outcome(Reply(kept[0], hit=True))
    with pytest.raises(JournalDown):  # still full
        session.recover()
    assert session.down is not None
    session.journal.max_mb = 10
    session.recover()
    assert session.down is None
    assert session.stats.decisions == len(kept)
    assert session.learner.round == len(kept)
    session.outcome(Reply(kept[0], hit=True))
    session.commit()
    assert replay(session.journal).sha256 == replay_of_live(session)


def replay_of_live(session):
    import hashlib

    return hashlib.sha256(session.model_file()).hexdigest()


def test_a_read_only_connection_refuses_with_503_and_recovers(open_session):
    session = open_session()
    session.decide(Ask(rows(1)[0], id="a"))
    session.commit()
    session.journal.writer.execute("PRAGMA query_only = ON")
    with pytest.raises(JournalDown, match="readonly") as caught:
        session.decide(Ask(rows(1)[0], id="b"))
    assert caught.value.status == 503
    assert session.find("a") is not None
    session.recover()  # opens it anew
    session.decide(Ask(rows(1)[0], id="b"))
    session.commit()
    assert session.learner.round == 2


def test_a_disk_that_fails_in_the_middle_loses_only_what_was_not_acknowledged(open_session, tmp_path):
    """A limit on file sizes makes real writes fail, as a broken or full disk does."""
    session = open_session()
    session.decide(Ask(rows(1)[0], id="a"))
    session.commit()
    now = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    wal = (tmp_path / "events.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 20_000, now[1]))
    try:
        kept, error = fill_until_down(session, 200)
        assert error.status in (503, 507)
        assert session.find("a") is not None
        with pytest.raises(JournalDown):
            session.recover()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, now)
        signal.signal(signal.SIGXFSZ, before)
    session.recover()
    assert session.stats.decisions == 1 + len(kept)
    assert all(session.find(id_) is not None for id_ in kept)
    session.close()
    assert open_session().stats.decisions == 1 + len(kept)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no mount command here, so no small disk to fill")
    if done.returncode:
        pytest.skip(f"may not mount a small disk here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_refuses_with_507_and_recovers(small_disk):
    session = Session.open(small_disk / "events.db", labels=LABELS, n_features=D, set_size=2)
    (small_disk / "filler").write_bytes(bytes(1_400_000))
    kept, error = fill_until_down(session)
    assert error.status == 507
    assert session.find(kept[-1]) is not None
    (small_disk / "filler").unlink()
    session.recover()
    assert session.stats.decisions == len(kept)
    session.decide(Ask(rows(1)[0]))
    session.close()


def test_a_read_only_disk_is_served_as_far_as_it_goes(small_disk):
    session = Session.open(small_disk / "events.db", labels=LABELS, n_features=D, set_size=2)
    session.decide(Ask(rows(1)[0], id="a"))
    session.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    session = Session.open(small_disk / "events.db")
    assert session.down is not None
    assert session.down.status == 503
    assert session.find("a") is not None
    with pytest.raises(JournalDown):
        session.decide(Ask(rows(1)[0]))
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    session.recover()
    session.decide(Ask(rows(1)[0], id="b"))
    session.close()


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
    assert near.sha256 == far.sha256 == replay_of_live(session)
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
    assert replay(again.journal, from_start=True).sha256 == replay_of_live(again)


def test_a_crash_in_the_middle_of_a_compaction_does_no_harm(open_session, monkeypatch):
    monkeypatch.setattr(archive_module, "DELETE_AT_ONCE", 50)
    session = filled(open_session)
    before = [e.text for e in session.journal.events()]
    expected = replay_of_live(session)
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
        assert replay_of_live(session) == expected
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


def test_replay_notices_a_changed_event(open_session):
    session = filled(open_session)
    event = session.journal.event(1)
    body = event.body
    body["labels"] = body["drawn"] = [label for label in LABELS if label not in body["labels"]][:2]
    session.journal.write("UPDATE events SET body = ? WHERE seq = 1", (json.dumps(body).encode(),))
    session.commit()
    done = replay(session.journal)
    assert done.different >= 1
    assert not done.same


def test_replay_notices_a_changed_outcome(open_session):
    session = filled(open_session)
    outcome = next(e for e in session.journal.events() if e.kind == 2)
    body = outcome.body
    body["taught"] = {"hit": not body["taught"]["hit"]}
    session.journal.write(
        "UPDATE events SET body = ? WHERE seq = ?", (json.dumps(body).encode(), outcome.seq)
    )
    session.commit()
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
    totals, live = session.stats.to_dict(), replay_of_live(session)
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

COLUMNS = ["id", "time", "x", "labels", "drawn", "top", "eligible", "set_size", "gamma", "propensity"]
COLUMNS += ["ordered_propensity", "hit", "label", "learner", "context"]


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
    assert table.columns == COLUMNS
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
    assert [list(line) for line in lines] == [COLUMNS] * 3
    assert [line["propensity"] for line in lines] == table["propensity"].to_list()


def test_export_of_sparse_rows_and_of_nothing(open_session, tmp_path):
    session = open_session()
    assert export(session.journal, tmp_path / "none.parquet") == 0
    session.decide(Ask((np.array([1, 3], np.int32), np.array([0.5, 2.0], np.float32))))
    session.commit()
    export(session.journal, tmp_path / "log.parquet")
    row = pl.read_parquet(tmp_path / "log.parquet").to_dicts()[0]
    assert (row["x_indices"], row["x_values"]) == ([1, 3], [0.5, 2.0])
    with pytest.raises(InvalidInput, match=r"\.parquet or \.jsonl"):
        export(session.journal, tmp_path / "log.csv")


def test_the_default_outcome_of_a_timeout_is_nobodys_answer(open_session, tmp_path):
    session = open_session(timeout=0.001, default=False)
    session.decide(Ask(rows(1)[0], "a"))
    session.commit()
    time.sleep(0.01)
    session.expire()
    session.commit()
    export(session.journal, tmp_path / "log.jsonl")
    assert json.loads((tmp_path / "log.jsonl").read_text())["hit"] is None
