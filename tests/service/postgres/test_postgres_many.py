"""Many sessions on one journal: any decides, any takes answers, one learns, and finds itself deposed."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.skip("issue 19: not ported from service/core to journal/ yet", allow_module_level=True)
from orjson import dumps
from service_kit import LABELS, call, rows, soon

from superarm.errors import FeedbackError
from superarm.data.rows import SparseRow
from superarm.service.core.entries import Ask, Reply
from superarm.service.core.events import CHANGE, DECISION, OUTCOME, to_decision
from superarm.service.core.faults import (
    Conflict,
    Erased,
    JournalDamaged,
    JournalDown,
    Refused,
    UnknownDecision,
)
from superarm.service.core.postgres import checking
from superarm.service.core.postgres.checking import verify
from superarm.service.core.postgres.electing import stand
from superarm.service.core.postgres.learning import FRESH, Learning, Settings
from superarm.service.core.postgres.moments import begin
from superarm.service.core.postgres.ordered import Ordered
from superarm.service.core.postgres.reading import PostgresJournal
from superarm.service.core.postgres.rebuilding import Past
from superarm.service.core.postgres.tables import SHIFT, Row
from superarm.service.core.snapshots import learner_from, model_bytes

X = rows(40)


def decide(session, i=0, **more):
    return call(session, session.decide, Ask(X[i % len(X)], **more))


def answer(session, id_, hit=True, **more):
    return call(session, session.outcome, Reply(id_, None if more else hit, **more))


def learnt(session, count):
    """Wait until so many answers are learnt, and this session decides with the model that did."""

    def there():
        session.refresh(now=True)
        session._follow()
        return session.stats.learnt >= count and session.serving.learnt >= count

    soon(there)


def sound(session):
    """Everything is there, in one order, and comes out again."""
    found = verify(session.address)
    assert found.problems == ()
    assert found.replayed.same
    return found


def learner_of(sessions):
    return soon(lambda: [one for one in sessions if one.learning is not None])[0]


def gated(monkeypatch):
    """An event that lets the learner take something only while it is set."""
    gate, take = threading.Event(), Learning._take
    gate.set()
    monkeypatch.setattr(Learning, "_take", lambda self: take(self) if gate.is_set() else False)
    return gate


def test_any_process_decides_and_any_takes_the_answer(shared):
    one, two, three = (shared() for _ in range(3))
    for i in range(30):
        made = decide([one, two, three][i % 3], i, id=f"d{i}")
        again = decide([two, three, one][i % 3], i, id=f"d{i}")  # idempotent across processes
        assert again.shown() == made.shown()
        took = answer([three, one, two][i % 3], f"d{i}", hit=i % 2 == 0)
        assert took.outcome["learnt"] is None  # nobody has taken it yet
        assert answer(one, f"d{i}", hit=i % 2 == 0).outcome["hit"] is (i % 2 == 0)
    with pytest.raises(Conflict, match="features"):
        call(two, two.decide, Ask(X[5], id="d1"))
    with pytest.raises(Conflict, match="as it was first answered"):
        answer(two, "d2", hit=False)
    with pytest.raises(UnknownDecision):
        answer(two, "nobody")
    decide(one, 1, id="few", eligible=tuple(LABELS[:3]))
    with pytest.raises(Refused, match="eligible labels"):
        answer(two, "few", label=LABELS[5])
    for session in (one, two, three):
        learnt(session, 30)
    soon(lambda: one.refresh(now=True) or one.stats.decisions == 31)
    assert one.find("d3").outcome == {**two.find("d3").outcome, "learnt": True, "late": False}
    found = sound(one)
    assert found.events == 61
    # one budget: the learner has counted everybody's decisions
    clock = found.replayed.learner.state.rule.clock
    assert clock[0] == 31.0


def test_the_same_id_at_the_same_moment_is_one_decision(shared):
    sessions = [shared() for _ in range(3)]
    barrier = threading.Barrier(3)

    def ask(session, n):
        barrier.wait()
        asks = [(session.decide, Ask(X[0], id=f"{n}-{i}"), i) for i in range(8)]
        shown = {i: made.shown() for i, made, error in session.turn(asks) if error is None}
        barrier.wait()
        answers = [(session.outcome, Reply(f"{n}-{i}", hit=True), i) for i in range(8)]
        assert all(error is None for _, _, error in session.turn(answers))
        return shown

    with ThreadPoolExecutor(3) as pool:
        for n in range(10):
            first, second, third = [
                future.result() for future in [pool.submit(ask, session, n) for session in sessions]
            ]
            assert first == second == third
    learnt(sessions[0], 80)
    assert sound(sessions[0]).events == 160


def test_an_answer_in_the_same_turn_as_its_decision_waits_for_it(shared):
    one = shared()
    calls = [(one.outcome, Reply("a", hit=True), "answer"), (one.decide, Ask(X[0], id="a"), "ask")]
    done = {name: error for name, _, error in one.turn(calls)}
    assert isinstance(done["answer"], UnknownDecision)  # it was there first
    assert done["ask"] is None
    calls = [(one.decide, Ask(X[0], id="b"), "ask"), (one.outcome, Reply("b", hit=True), "answer")]
    assert {name: error for name, _, error in one.turn(calls)} == {"ask": None, "answer": None}
    learnt(one, 1)
    sound(one)


def test_answers_are_taken_after_their_decisions(shared, monkeypatch):
    one = shared(learn=False)

    def row(writer, n, kind, of=None):
        body = {"hit": True, "label": None, "of": of} if kind == OUTCOME else {}
        return Row((writer << SHIFT) + n, 1.0, kind, f"{writer}.{n}", None, None, dumps(body), b"")

    learning = object.__new__(Learning)
    learning.model = object.__new__(Ordered)
    learning.model._known = {}
    learning.model.positions = {7: (7 << SHIFT) + 1}
    decision = (8 << SHIFT) + 5
    found = [row(7, 2, OUTCOME, of=(7 << SHIFT) + 1), row(7, 3, OUTCOME, of=decision), row(7, 4, DECISION)]
    taken, ranges = learning._cut(found)  # writer 8 has committed, but was not read as far
    assert [one.number & 7 for one in taken] == [2]
    assert ranges == [[(7 << SHIFT) + 1, (7 << SHIFT) + 2]]
    taken, ranges = learning._cut([*found, row(8, 5, DECISION)])
    assert [one.number for one in taken] == [(7 << SHIFT) + 4, decision, (7 << SHIFT) + 2, (7 << SHIFT) + 3]
    assert [until for _, until in ranges] == [(7 << SHIFT) + 4, decision]
    one.close()


def test_a_batch_costs_as_much_as_it_holds_however_many_wait(shared):
    """A plan that sorts would read all that waits, for each batch of it."""
    one = shared(learn=False)
    for i in range(5):
        decide(one, i)
    with one.address.connect("superarm learns") as connection:
        office = stand(connection, "test", 10.0)
        Learning(office, Settings(), "test", one.address)
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {FRESH}", (4,)))
    assert "Index Scan using events_pkey" in plan
    assert "Sort" not in plan
    assert "JIT" not in plan


def test_another_learns_when_the_learner_goes(shared):
    sessions = [shared() for _ in range(3)]
    for n in range(4):
        learner = learner_of(sessions)
        assert sum(one.learning is not None for one in sessions) == 1
        for i in range(10):
            made = decide(sessions[i % len(sessions)], i, id=f"{n}-{i}")
            answer(sessions[(i + 1) % len(sessions)], made.place.id, hit=i % 3 == 0)
        learnt(sessions[0], 10 * (n + 1))
        if n % 2:  # its connection is lost, and it does not know why
            was = learner.learning
            pid = was.connection.info.backend_pid
            with learner.journal.reading() as connection:
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            soon(lambda who=learner, was=was: who.learning is not was)
        else:
            learner.close()
            sessions.remove(learner)
            sessions.append(shared())
    found = sound(sessions[0])
    assert found.replayed.events == 80


def test_a_learner_that_was_paused_finds_itself_deposed(shared, monkeypatch):
    one = shared()
    learner_of([one])
    two = shared()
    decide(one, 0, id="a")
    paused, wake = threading.Event(), threading.Event()
    take, model = Ordered.take, one.learning.model

    def sleepy(self, rows_, taken):
        notes = take(self, rows_, taken)
        if self is model and not paused.is_set():
            paused.set()
            wake.wait(60)  # as if the machine had been stopped, with the batch in hand
        return notes

    monkeypatch.setattr(Ordered, "take", sleepy)
    answer(two, "a")
    assert paused.wait(5)
    soon(lambda: two.learning is not None)  # while the first is still away
    decide(two, 1, id="b")
    answer(two, "b", hit=False)
    learnt(two, 2)
    wake.set()
    soon(lambda: one.learning is None)
    learnt(one, 2)
    assert sound(two).events == 4  # nothing lost, nothing learnt twice


def test_a_term_that_is_over_writes_nothing(shared):
    one = shared()
    learning = learner_of([one]).learning
    with one.journal.reading() as connection:
        connection.execute("UPDATE leader SET term = term + 1")  # the lock is still there, the term is not
    decide(one, 0, id="a")
    soon(lambda: one.learning is not None and one.learning is not learning)
    answer(one, "a")
    learnt(one, 1)
    with one.journal.reading() as connection:
        terms = [row[0] for row in connection.execute("SELECT term FROM batches ORDER BY version")]
    assert terms[0] >= 3
    sound(one)


def test_a_version_never_goes_back(shared):
    one = shared()
    decide(one, 0, id="a")
    answer(one, "a")
    learnt(one, 1)
    before = one.serving.version
    with one.journal.reading() as connection:
        connection.execute("DELETE FROM published")  # as after a crash of the database
        one._pick_up(connection)
    assert one.serving.version == before
    other = shared()  # begins with a snapshot and the order
    assert other.serving.version >= before
    assert other.model_file() == one.model_file()
    sound(one)


def test_a_learner_of_labels_refuses_a_bit(shared):
    one = shared(learner="perceptron")
    decide(one, 0, id="a")
    with pytest.raises(FeedbackError):
        answer(one, "a", hit=True)
    answer(one, "a", label="label-3")
    learnt(one, 1)
    sound(one)


def test_timeouts_and_what_comes_after_them(shared):
    one = shared(timeout=0.3, default=False, snapshot_every=5)
    for i in range(6):
        decide(one, i, id=f"d{i}")
    answer(one, "d0")
    learnt(one, 6)  # one answer, and five defaults
    entry = one.find("d1")
    assert (entry.outcome["timeout"], entry.outcome["learnt"], entry.outcome["hit"]) == (True, True, False)
    assert [place.id for place in one.journal.open_places(limit=10)] == []
    late = answer(one, "d1", hit=True)
    assert late.outcome["hit"] is True
    soon(lambda: one.find("d1").outcome["late"])
    told = one.find("d1")
    assert (told.full()["state"], told.outcome["learnt"]) == ("answered late", False)
    one.refresh(now=True)
    assert (one.stats.timeouts, one.stats.late, one.stats.learnt, one.stats.pending) == (5, 1, 6, 0)
    assert len(one.snapshots()) > 1
    sound(one)


def test_a_default_of_nothing_leaves_the_late_answer_to_learn(shared):
    one = shared(timeout=0.2)
    decide(one, 0, id="a")
    soon(lambda: (one.find("a").outcome or {}).get("timeout"))
    answer(one, "a", hit=True)
    learnt(one, 1)
    assert one.find("a").outcome == {**one.find("a").outcome, "late": True, "learnt": True, "hit": True}
    sound(one)


def test_first_rows_of_two_kinds(shared):
    one, two = shared(), shared()
    sparse = SparseRow(np.array([1, 3], np.int32), np.array([1.0, 2.0], np.float32), 5)
    for i in range(4):
        call(one, one.decide, Ask(X[i], id=f"dense-{i}"))
        call(two, two.decide, Ask(sparse, id=f"sparse-{i}"))
    for i in range(4):
        answer(two, f"dense-{i}")
        answer(one, f"sparse-{i}", hit=False)
    learnt(one, 8)
    learnt(two, 8)
    call(two, two.decide, Ask(sparse, id="more"))
    sound(one)


def test_rows_with_names_that_come_as_they_come(shared):
    """Each process may see names that nobody knows yet: only the one that learns gives them places."""
    one, two = shared(n_features=None), shared()
    cities = ["Rome", "Oslo", "Bonn"]
    for i in range(24):
        row = {"age": 20.0 + i, "city": cities[i % 3], f"new{i // 6}": 1.0, "income": None}
        session = (one, two)[i % 2]
        made = call(session, session.decide, Ask(row, id=f"d{i}"))
        assert made.decision.x == row
        answer((two, one)[i % 2], f"d{i}", hit=i % 3 == 0)
        if i == 12:
            learnt(one, 13)
            learnt(two, 13)
    learnt(one, 24)
    assert set(one.learner.names.numbers) == {"age", "new0", "new1", "new2", "new3"}
    before = one.learner.names.numbers
    call(one, one.decide, Ask({"age": 1.0, "unknown": 5.0}, id="unknown"))
    assert one.learner.names.numbers == before  # this process gives no places
    found = sound(one)
    assert found.replayed.learner.names.numbers == before


def test_first_rows_with_names_and_without(shared, monkeypatch):
    gate = gated(monkeypatch)
    one, two = shared(n_features=None), shared()
    gate.clear()  # neither knows of the other's row
    call(one, one.decide, Ask({"age": 3.0}, id="named"))
    call(two, two.decide, Ask(X[0], id="plain"))
    gate.set()
    answer(one, "named")
    answer(one, "plain")
    soon(lambda: one.find("plain").outcome["learnt"] is not None)
    soon(lambda: one.find("named").outcome["learnt"] is not None)
    learnt_ = [one.find(id_).outcome["learnt"] for id_ in ("named", "plain")]
    assert sorted(learnt_) == [False, True]  # whichever came first in the order decides
    sound(one)


def test_a_decision_by_numbers_is_the_one_by_names(shared):
    """The learner has a quick way for dense rows: what it learns from is the same, to the last bit."""
    one = shared(learn=False)
    few = {"eligible": tuple(LABELS[4:0:-1]), "set_size": 2}
    for i in range(40):
        call(one, one.decide, Ask(X[i], id=f"d{i}", **(few if i % 3 else {})))
    twins = [learner_from(one.model_file()) for _ in range(2)]
    with one.journal.reading() as connection:
        past = Past(connection, "here")
        model = Ordered(past, past.snapshot(0), past.lookup)
        found = [row.decision for row in past.lookup([f"d{i}" for i in range(40)]).values()]
    begin(model.learner, X[0])
    for twin in twins:
        begin(twin, X[0])
        twin.round = 10**6
    for row in found:
        body = model._body_for(row.body)
        quick, plain = model._decision(row.x, body), to_decision(row.x, body, twins[1].id)
        assert quick._known is not None
        assert quick.to_dict() == plain.to_dict()
        for twin, decision in zip(twins, (quick, plain), strict=True):
            twin.update(decision, hit=row.number % 3 == 0)
    assert model_bytes(twins[0]) == model_bytes(twins[1])


def test_labels_grow_while_others_still_decide_without_them(shared):
    one, two = shared(), shared()
    old = decide(two, 0, id="old")
    one.add_labels(["new-1", "new-2"])
    assert one.labels[-2:] == ("new-1", "new-2")
    soon(lambda: two.coming is not None or len(two.labels) == 8)
    one.retire_labels(["label-0"])
    with pytest.raises(Refused, match="new, or retired"):
        two.add_labels(["label-1"])
    with pytest.raises(Refused, match="explore of change must be given"):
        two.set_explore()
    answer(one, old.place.id, label="label-4")
    for i in range(12):
        made = decide(one, i, id=f"d{i}")
        assert "label-0" not in made.body["labels"]
        answer(two, f"d{i}", label="new-1" if i % 2 else made.body["labels"][0])
    learnt(one, 13)
    assert [change["what"] for change in two.changes()] == ["add_labels", "retire_labels"]
    two.refresh(now=True)
    assert two.stats.labels == one.stats.labels
    sound(one)


def test_what_is_erased_is_passed_by_way_of_a_snapshot(shared):
    one, two = shared(), shared()
    for i in range(20):
        decide(one, i, id=f"d{i}", context={"name": "Ada"})
        if i < 15:
            answer(two, f"d{i}", hit=i % 2 == 0)
    learnt(one, 15)
    assert one.erase(ids=["d3", "d17"]) == 2
    soon(lambda: two.serving.erasures or two._follow())
    with pytest.raises(Erased):
        decide(two, 3, id="d3", context={"name": "Ada"})
    assert one.find("d3").full()["features"] is None
    answer(two, "d17")
    answer(two, "d18")
    learnt(one, 16)
    assert soon(lambda: one.find("d17").outcome["learnt"] is False)
    found = sound(one)
    assert found.erased == 2
    assert len(found.replayed.jumps) == 1
    with pytest.raises(UnknownDecision):
        one.erase(ids=["nobody"])
    assert two.erase(before=time.time() + 1.0) == 18
    sound(one)


def test_answers_in_the_batch_of_an_erasure_are_learnt(shared, monkeypatch):
    """Retention comes when it comes: it must not make the learner forget what it is just being told."""
    gate = gated(monkeypatch)
    one = shared()
    for i in range(6):
        decide(one, i, id=f"d{i}")
    soon(lambda: one.refresh(now=True) or one.stats.decisions == 6)
    two = shared()  # a younger writer: what it writes comes after what the learner itself writes
    gate.clear()
    decide(two, 6, id="d6")
    for i in range(7):
        answer(two, f"d{i}", hit=i % 2 == 0)
    learning = learner_of([one, two]).learning
    erase = dumps({"what": "erase", "ids": None, "before": time.time() - 1_000.0})
    learning.writer.insert(learning.writer.rows([(time.time(), CHANGE, "", None, None, erase)]))
    waiting = verify(one.address)
    assert (waiting.events, waiting.waiting, waiting.problems) == (6, 9, ())
    assert len(list(PostgresJournal(one.address).events())) == 15  # an export misses nothing that is kept
    gate.set()
    learnt(one, 7)
    assert sound(one).waiting == 0


def test_a_change_that_was_refused_stays_refused(shared):
    """Also where it could be made by now."""
    one = shared(snapshot_every=1, keep_snapshots=0)
    decide(one, 0, id="a")
    with pytest.raises(Refused, match="the event of a kept snapshot"):
        one.go_back(8)
    for i in range(6):
        decide(one, i, id=f"d{i}")
        answer(one, f"d{i}")
        learnt(one, i + 1)
    assert 8 in one.journal.snapshots()
    sound(one)


def test_replay_begins_with_the_oldest_kept_snapshot(shared):
    one = shared(snapshot_every=10, keep_snapshots=2)
    for i in range(30):
        decide(one, i, id=f"d{i}")
        answer(one, f"d{i}", hit=i % 2 == 0)
        if i % 5 == 4:
            learnt(one, i + 1)
    kept = one.journal.snapshots()
    assert kept[0] == 0
    assert len(kept) == 3
    near, far = checking.replay(one.address), checking.replay(one.address, from_start=True)
    assert (near.start, near.events) == (kept[1], 60 - kept[1])
    assert (far.start, far.events) == (0, 60)
    assert near.same
    assert far.same
    assert near.sha256 == far.sha256
    assert near.checked == tuple(seq for seq in far.checked if seq > kept[1])
    with one.journal.reading() as connection:  # what is damaged before its start, it does not see
        connection.execute(
            "UPDATE events SET time = time + 1.0 WHERE number = (SELECT min(number) FROM events)"
        )
    assert checking.replay(one.address).same
    with pytest.raises(JournalDamaged, match="are not what was written"):
        checking.replay(one.address, from_start=True)


def test_a_model_that_is_long_past_is_found_again(shared, monkeypatch):
    monkeypatch.setattr(checking, "AT_HAND", 2)
    one, two = shared(), shared()
    decide(two, 0, id="first")
    monkeypatch.setattr(type(two), "_pick_up", lambda self, connection: None)  # a process that was paused
    for i in range(8):
        decide(one, i, id=f"d{i}")
        answer(one, f"d{i}")
        time.sleep(0.05)
    decide(two, 1, id="last")
    assert two.serving.version <= 1
    soon(lambda: one.refresh(now=True) or one.stats.decisions == 10)
    sound(one)


def test_damage_is_found(shared):
    one = shared()
    for i in range(6):
        decide(one, i, id=f"d{i}")
        answer(one, f"d{i}")
    learnt(one, 6)
    one.close()
    sound(one)
    damages = [
        ("UPDATE events SET x = set_byte(x, 0, 1) WHERE id = 'd2' AND kind = 1", "is not what was written"),
        (
            "UPDATE events SET body = replace(convert_from(body, 'UTF8'), 'true', 'false')::bytea "
            "WHERE id = 'd1' AND kind = 2",
            "not what was written",
        ),
        ("DELETE FROM events WHERE id = 'd4' AND kind = 2", "missing"),
        ("UPDATE batches SET model = 'x' WHERE version = 1", "not what was written"),
        ("UPDATE parts SET data = set_byte(data, 200, 7) WHERE seq = 0", "the snapshot after event 0"),
        ("UPDATE writers SET taken = taken - 1 WHERE taken & 255 > 5", "how far"),
        ("INSERT INTO results SELECT number, '{}' FROM events WHERE id = 'd5' AND kind = 2", "noted"),
    ]
    for sql, words in damages:
        with one.address.connect() as connection:
            connection.execute("CREATE SCHEMA kept")
            for table in ("events", "batches", "parts", "writers", "results"):
                connection.execute(f"CREATE TABLE kept.{table} AS TABLE superarm.{table}")
            connection.execute(sql)
        try:
            found = verify(one.address).problems
        except JournalDamaged as error:
            found = (str(error),)
        assert any(words in problem for problem in found), (sql, found)
        with one.address.connect() as connection:
            for table in ("events", "batches", "parts", "writers", "results"):
                connection.execute(f"TRUNCATE superarm.{table}")
                connection.execute(f"INSERT INTO superarm.{table} SELECT * FROM kept.{table}")
            connection.execute("DROP SCHEMA kept CASCADE")
    sound(one)


def test_without_a_learner_changes_wait_and_say_so(shared, monkeypatch):
    from superarm.service.core.postgres import session as module

    monkeypatch.setattr(module, "CHANGE_SECONDS", 0.2)
    one = shared(learn=False)
    decide(one, 0, id="a")
    with pytest.raises(JournalDown, match="nobody learns at the moment"):
        one.freeze()
    two = shared()
    soon(lambda: two.refresh(now=True) or (two._follow() or two.frozen))
    assert [change["what"] for change in two.changes()] == ["freeze"]
    sound(two)
