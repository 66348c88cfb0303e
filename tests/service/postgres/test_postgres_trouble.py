"""What an operator once broke: clocks, rights, a database that hangs, restarts or is full, cold starts."""

from __future__ import annotations

import importlib
import time

from service_kit import rows, soon

from superarm.service.core.entries import Ask, Reply
from superarm.service.core.postgres import session as module
from superarm.service.core.postgres.clock import DatabaseClock

X = rows(20)


def call(session, method, argument):
    """One call in a turn of its own."""
    [(_, result, error)] = session.turn([(method, argument, None)])
    if error is not None:
        raise error
    return result


def decide(session, id_, i=0):
    return call(session, session.decide, Ask(X[i], id=id_))


def learner_of(*sessions):
    return soon(lambda: [one for one in sessions if one.learning is not None])[0]


# ---------------------------------------------------------------- clocks


def test_a_process_with_a_wrong_clock_changes_nothing(shared, compiled, monkeypatch):
    one = shared(timeout=20.0, default=False)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600.0)
    importlib.reload(module)  # as a process would that has begun with such a clock
    slow = shared(learn=False)
    assert decide(slow, "slow").place.time == slow.find("slow").place.time
    monkeypatch.undo()
    decide(one, "right")
    soon(lambda: one.refresh(now=True) or one.stats.decisions == 2)
    learning = learner_of(one).learning
    before = learning._upkeep_at
    soon(lambda: learning._upkeep_at > before)  # it has looked for what is due
    assert one.find("slow").outcome is None  # not expired
    assert abs(one.find("slow").place.time - one.find("right").place.time) < 60.0
    assert one.erase(before=one.clock() - 1800.0) == 0
    call(one, one.outcome, Reply("slow", hit=True))
    assert soon(lambda: one.find("slow").outcome["learnt"])


def test_the_database_tells_the_time(shared, monkeypatch):
    one = shared(learn=False)
    with one.journal.reading() as connection:
        clock = DatabaseClock(connection)
        before = clock()
        [[told]] = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchall()
        assert before - 0.5 < told < clock() + 0.5
        clock._offset -= 100.0
        monkeypatch.setattr("superarm.service.core.postgres.clock.SLOW", 0.0)
        clock.learn(connection)  # an answer that took too long tells nothing
        assert clock() < told - 50.0
        monkeypatch.undo()
        clock.learn(connection)
        assert abs(clock() - told) < 1.0
