"""What only PostgreSQL has: many who append and project, addresses, encodings, moving."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from journal_kit import Driver, superarm
from postgres_kit import database_name
from service_kit import LABELS, D, rows, soon
from test_store import FIRST, META, decision

from superarm.errors import InvalidInput
from superarm.journal.changes import Erase
from superarm.journal.errors import JournalDamaged, JournalUnavailable
from superarm.journal.snapshots import model_bytes
from superarm.journal.verify import verify
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.request_errors import DecisionErased

NEW = {"labels": LABELS, "n_features": D, "set_size": 2}


@pytest.fixture
def shared(database):
    """Opens (and at the end closes) processes' services on one shared journal."""
    url, opened = database.fresh(), []

    def make(**options):
        driver = Driver.open(url, **(({} if opened else NEW) | options))
        driver.url = url
        opened.append(driver)
        return driver

    yield make
    for driver in opened:
        driver.service.close()


def caught_up(driver):
    """The projector of a process, after a batch without requests."""
    driver.call(lambda: None)
    assert driver.service.follower.projector.seq == driver.store.head().seq
    return driver.projector


def test_many_append_at_once_in_one_order_without_holes(database):
    from superarm.journal.postgres import PostgresStore

    address = database.fresh()
    PostgresStore.create(address, META, FIRST)

    def work(number):
        store = PostgresStore(address)
        for i in range(40):
            store.append([decision(f"{number}.{i}.{j}") for j in range(5)])
            lost.append(len(store.append([decision(f"same.{i}")])))
        store.close()

    lost = []
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = PostgresStore(address, read_only=True)
    assert [event.seq for event in store.events()] == list(range(1, 4 * 40 * 5 + 40 + 1))
    assert sum(lost) == 3 * 40  # one of four has each
    assert list(store.problems()) == []
    store.close()


def test_a_view_that_comes_after_the_end_opens_no_connection(shared):
    store = shared().store
    store.close()
    with pytest.raises(JournalUnavailable, match="is closed"):
        store.pending(1)
    assert not store._opened


def test_every_process_comes_to_the_same_model(shared):
    drivers = [shared(), shared(), shared()]
    for i, x in enumerate(rows(90)):
        drivers[i % 3].decide(DecisionRequest(x, f"d{i}"))
        answered = drivers[i * i % 3].outcome(OutcomeRequest(f"d{i}", hit=i % 3 == 0))
        assert answered.outcome["learnt"] is True  # known at once, whoever decided
    one, two, three = (model_bytes(caught_up(driver).learner) for driver in drivers)
    assert one == two == three
    assert model_bytes(caught_up(shared()).learner) == one  # also one that comes later


def test_a_turn_that_others_have_overtaken_projects_their_events_before_its_own(shared, monkeypatch):
    one, two = shared(), shared()
    one.decide(DecisionRequest(rows(1)[0], "first"))
    append, store = one.store.append, one.store

    def overtaken(events, **after):
        monkeypatch.setattr(store, "append", append)
        two.outcome(OutcomeRequest(two.decide(DecisionRequest(rows(2)[1], "two")).id, hit=True))
        return append(events, **after)

    monkeypatch.setattr(store, "append", overtaken)
    one.decide(DecisionRequest(rows(1)[0], "one"))
    assert [event.id for event in store.events()] == ["first", "two", "two", "one"]
    assert one.service.follower.projector.seq == 4
    assert one.find("one").body.model_seq == 1  # what it was decided with
    assert model_bytes(caught_up(one).learner) == model_bytes(caught_up(two).learner)
    assert verify(one.url).replayed.same


def test_a_process_that_an_erasure_has_overtaken_goes_on_from_its_snapshot(shared):
    one, two = shared(), shared()
    late = shared(shadows=["set-logit"])
    one.run(30, hits=lambda i: i % 2 == 0)
    one.erase(ids=["d3"])
    caught_up(two)  # finds the erasure made, and its own records are gone
    with pytest.raises(DecisionErased):
        two.decide(DecisionRequest(rows(4)[3], "d3"))
    assert late.service.follower.projector.seq == 0
    assert model_bytes(caught_up(late).learner) == model_bytes(caught_up(one).learner)
    assert late.projector.loaded_snapshots == [61]
    assert late.projector.totals.stats.learnt == 30
    assert verify(one.url).ok


def go_back(driver, seq):
    """Take the last events away, as a failover to a replica that lags, or a backup, does."""
    with driver.store.writing() as connection:
        for table in ("events", "pending", "snapshots"):
            connection.execute(f"DELETE FROM {table} WHERE seq > %s", (seq,))
        last = "SELECT seq, time, digest FROM events ORDER BY seq DESC LIMIT 1"
        connection.execute(f"UPDATE head SET (seq, time, digest) = ({last})")


def test_a_database_that_went_back_and_on_again_is_read_anew(shared):
    one, two = shared(), shared()
    one.run(10, hits=lambda i: True)
    before = caught_up(two).snapshot(0.0)
    go_back(one, 12)
    one.run(10, "other", hits=lambda i: False)
    with pytest.raises(JournalDamaged, match="another one than before"):  # its model is of none of them
        two.store.write_snapshot(before)
    two.run(3, "more", hits=lambda i: True)
    assert model_bytes(caught_up(two).learner) == model_bytes(caught_up(one).learner)
    assert two.counts() == one.counts()
    assert verify(one.url).replayed.same
    assert not two.problems()


def test_an_event_that_a_database_has_put_after_others_than_were_projected_is_not_projected(
    shared, monkeypatch
):
    one, two = shared(), shared()
    one.run(4, hits=lambda i: True)
    caught_up(two)
    append, store = two.store.append, two.store

    def moved_back(events, **after):  # between looking for new events and writing
        monkeypatch.setattr(store, "append", append)
        go_back(one, 2)
        return append(events, **after)

    monkeypatch.setattr(store, "append", moved_back)
    two.outcome(OutcomeRequest(two.decide(DecisionRequest(rows(1)[0], "x")).id, hit=False))
    assert model_bytes(caught_up(two).learner) == model_bytes(caught_up(one).learner)
    assert verify(one.url).replayed.same


@pytest.mark.parametrize("default", [None, False])
def test_what_was_erased_later_counts_the_same_whoever_projected_before(shared, default):
    """Outcomes that teach nothing: of a frozen model, or that say what the default has said."""
    options = {"timeout": 0.001, "default_outcome": default, "shadows": ["set-logit:explore=show"]}
    one = shared(**options)
    one.run(5)
    if default is None:
        one.freeze()
    else:
        soon(lambda: one.expire() or one.stats.timeouts == 5)
    one.snapshot()
    two = shared(**options)  # without these decisions in memory
    for i in range(5):
        one.outcome(OutcomeRequest(f"d{i}", hit=False))
    one.erase(ids=[f"d{i}" for i in range(5)])
    assert caught_up(two).totals.to_dict() == one.projector.totals.to_dict()
    assert two.reports() == one.reports()
    assert verify(one.url).ok


def test_an_erasure_that_its_process_did_not_live_to_make_is_made_by_another(shared, monkeypatch):
    from superarm.service.follower import JournalFollower

    one, two = shared(), shared()
    one.decide(DecisionRequest(rows(1)[0], "a"))
    monkeypatch.setattr(JournalFollower, "apply", lambda self, events: None)  # it is killed after the commit
    seq = one.call(Erase(ids=["a"]))
    monkeypatch.undo()
    assert not one.find("a").erased
    caught_up(two)
    assert two.find("a").erased
    assert one.service.follower.n_erased(seq) == 1  # also if another process has made it
    assert verify(one.url).ok


def test_one_process_at_a_time_writes_what_only_time_brings(shared):
    one, two = shared(timeout=0.0001), shared(timeout=0.0001)
    one.decide(DecisionRequest(rows(1)[0], "a"))
    assert [driver.store.begin_upkeep() for driver in (one, two, one, two)] == [True, False, True, False]
    soon(two.store.begin_upkeep)  # if the first does not ask again
    assert not one.store.begin_upkeep()


def test_a_timeout_that_comes_late_or_twice_is_one(shared):
    """Of a process that was stopped with the due ones in hand, and woke up after another had closed them."""
    one, two = shared(timeout=0.05, default_outcome=False), shared(timeout=0.05, default_outcome=False)
    for id_ in ("a", "b"):
        one.decide(DecisionRequest(rows(1)[0], id_))
    soon(one.store.begin_upkeep)
    due = soon(lambda: len(events := one.service.upkeep.timeouts()) == 2 and events)
    two.outcome(OutcomeRequest("b", hit=True))
    two.call(lambda: two.store.append(two.service.upkeep.timeouts()) and None)
    assert [event.id for event in one.store.append(due)] == ["a"]  # it has been closed
    stats = caught_up(one).totals.stats
    assert (stats.timeouts, stats.outcomes, stats.learnt) == (1, 1, 2)
    assert one.find("b").status == "answered"
    assert verify(one.url).ok


def test_an_erased_decision_is_forgotten_by_every_process(shared):
    one, other = shared(), shared()
    for i, x in enumerate(rows(22)):
        one.decide(DecisionRequest(x, f"d{i}"))
        one.call(Erase(ids=[f"d{i}"]))
    caught_up(one)
    one.decide(DecisionRequest(rows(1)[0], "late"))
    one.call(Erase(ids=["late"]))
    caught_up(one)
    for driver in (one, other):
        with pytest.raises(DecisionErased):
            driver.decide(DecisionRequest(rows(1)[0], "late"))


def test_a_journal_moves_from_a_file(drive, database, tmp_path):
    from superarm.journal.move import move

    driver = drive()
    for i, x in enumerate(rows(60)):
        driver.decide(DecisionRequest(x, f"d{i}"))
        if i % 3:
            driver.outcome(OutcomeRequest(f"d{i}", hit=True))
        if i == 30:
            driver.snapshot()
    driver.erase(ids=["d4"])
    model = driver.model_file()
    driver.close()
    url = database.fresh()
    assert move(tmp_path / "events.db", url) == 101
    with pytest.raises(InvalidInput, match="without a superarm journal"):
        move(tmp_path / "events.db", url)
    result = verify(url)
    assert result.ok, result.problems
    there = Driver.open(url)
    try:
        assert model_bytes(caught_up(there).learner) == model
        assert there.outcome(OutcomeRequest("d0", hit=True)).outcome["hit"]
        there.decide(DecisionRequest(rows(1)[0], "more"))
        caught_up(there)
    finally:
        there.service.close()
    assert verify(url).ok


def test_the_environment_cannot_choose_another_encoding(database, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    labels = ["Größe", "日本", "x"]
    driver = Driver.open(database.fresh(), labels=labels, n_features=D, set_size=2)
    try:
        driver.decide(DecisionRequest(rows(1)[0], "a", context={"name": "Søren 🙂"}))
        assert driver.find("a").full()["context"] == {"name": "Søren 🙂"}
    finally:
        driver.service.close()


def test_a_role_that_may_only_read_is_served_as_far_as_it_goes(database, shared):
    driver = shared()
    driver.decide(DecisionRequest(rows(1)[0], "a"))
    caught_up(driver)
    name = database_name(driver.url)
    with database.connect(name) as connection:
        connection.execute("DROP ROLE IF EXISTS looks")
        connection.execute("CREATE ROLE looks LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA superarm TO looks")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA superarm TO looks")
    looking = Driver.open(database.address(name, "looks"))
    try:
        assert not looking.ready
        assert "may do this" in looking.problems()[0]
        assert looking.find("a") is not None
        driver.decide(DecisionRequest(rows(1)[0], "c"))
        with pytest.raises(JournalUnavailable):
            looking.recover()
        assert looking.service.follower.projector.seq == 2  # it sees what others write
        with pytest.raises(JournalUnavailable):
            looking.decide(DecisionRequest(rows(1)[0], "b"))
        assert looking.decide(DecisionRequest(rows(1)[0], "a")).labels == driver.find("a").labels  # repeated
    finally:
        looking.service.close()
    with database.connect(name) as connection:
        connection.execute("DROP OWNED BY looks")
        connection.execute("DROP ROLE looks")


def test_rows_with_names_on_many_processes(database):
    url = database.fresh()
    one = Driver.open(url, labels=LABELS, set_size=2)
    two = Driver.open(url)
    try:
        random = np.random.default_rng(0)
        for i in range(60):
            x = {
                "age": float(random.normal()),
                "city": "Rome",
                **({f"late {i // 10}": 1.0} if i > 10 else {}),
            }
            driver = (one, two)[i % 2]
            driver.outcome(OutcomeRequest(driver.decide(DecisionRequest(x)).id, hit=i % 3 == 0))
        assert caught_up(one).totals.stats.learnt == 60
    finally:
        one.service.close()
        two.service.close()
    result = verify(url)
    assert result.ok, result.problems
    assert result.replayed.same


def test_the_commands_take_an_address(database, shared, tmp_path):
    driver = shared()
    driver.run(10, hits=lambda i: True)
    caught_up(driver)
    for command in (["replay", driver.url], ["verify", driver.url], ["migrate", driver.url],
                    ["export", driver.url, "--output", tmp_path / "log.jsonl"]):  # fmt: skip
        done = superarm(*command)
        assert done.returncode == 0, done.stderr
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 10


def test_events_that_are_missing_at_the_end_are_damage(shared, database):
    driver = shared()
    driver.run(3)
    with database.connect(database_name(driver.url)) as connection:
        connection.execute("DELETE FROM superarm.events WHERE seq > 1")
    assert verify(driver.url).damaged == [2, 3]
