"""While a journal cannot be written, calls that have nothing to write are answered; the others are refused."""

from __future__ import annotations

import asyncio

import pytest
from journal_kit import replayed, sha256_of
from service_kit import rows

from superarm.errors import InvalidInput
from superarm.journal.changes import Erase, Freeze, Unfreeze
from superarm.journal.errors import JournalFull, JournalUnavailable
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.commit_queue import Call
from superarm.service.request_errors import Conflict
from superarm.service.service import Service

X, Y = rows(2)


@pytest.fixture
def full(drive, monkeypatch):
    """A service with two decisions, one of them answered, on a disk that has become full."""
    driver = drive(snapshot_every=1)
    driver.decide(DecisionRequest(X, "a", context={"n": 1}))
    driver.decide(DecisionRequest(Y, "b"))
    driver.outcome(OutcomeRequest("a", hit=True))

    def fail(*_):
        raise JournalFull("the disk is full")

    monkeypatch.setattr(driver.store, "_transaction", fail)
    with pytest.raises(JournalFull):
        driver.decide(DecisionRequest(X, "c"))
    assert driver.outage is not None
    return driver


@pytest.mark.parametrize("retry", [False, True], ids=["down", "tried again in vain"])
def test_repeated_requests_are_answered_while_the_journal_is_down(full, retry):
    service = full.service
    if retry:
        with pytest.raises(JournalFull):
            full.recover()
    model = full.model_file()
    calls = [
        Call(DecisionRequest(X, "a", context={"n": 1})),
        Call(OutcomeRequest("a", hit=True)),
        Call(DecisionRequest(X, "c")),
        Call(DecisionRequest(X, "c")),
        Call(OutcomeRequest("b", hit=True)),
        Call(OutcomeRequest("c", hit=True)),
        Call(DecisionRequest(Y, "a")),
        Call(OutcomeRequest("b", label="nobody knows it")),
        Call(Freeze()),
        Call(Erase(ids=["a"])),
        Call(Unfreeze()),
    ]
    done = service.commit(calls)
    again, outcome, change = [one.result for one in done if one.error is None]
    assert list(again.labels) == full.find("a").labels
    assert outcome.outcome.learnt
    assert change is None  # it is not frozen
    errors = [type(one.error) for one in done if one.error is not None]
    assert errors == [JournalFull] * 4 + [Conflict, InvalidInput] + [JournalFull] * 2
    assert full.seq == 3
    assert full.model_file() == model
    assert full.outage is not None


def test_the_model_file_is_given_and_upkeep_waits_while_the_journal_is_down(full):
    service = full.service

    async def main():
        await service.start()
        service._retry_at = float("inf")
        given = await service.model_file()
        with pytest.raises(JournalUnavailable):
            await service.upkeep.snapshot()
        await asyncio.sleep(0.6)
        assert service.upkeep.error is None  # /ready says once that the journal is down
        await service.stop()
        return given

    assert asyncio.run(main()) == full.model_file()


def test_a_journal_that_is_up_again_goes_on_after_what_was_answered(full, monkeypatch):
    full.service.call(DecisionRequest(X, "a", context={"n": 1}))
    monkeypatch.undo()
    full.recover()
    full.decide(DecisionRequest(X, "c"))
    full.outcome(OutcomeRequest("c", hit=False))
    assert full.seq == 5
    assert replayed(full, from_start=True).sha256 == sha256_of(full)


def test_a_model_that_was_left_in_the_midst_of_events_answers_nothing(full):
    full.projector.is_intact = False
    with pytest.raises(JournalFull):
        full.service.call(DecisionRequest(X, "a", context={"n": 1}))


def test_a_database_that_is_gone_is_not_asked_again_for_each_batch(full, monkeypatch):
    """It may hang for seconds each time."""
    service: Service = full.service
    asked = []

    def hang():
        asked.append(1)
        raise JournalUnavailable("the database does not answer")

    monkeypatch.setattr(full.store, "shared", True, raising=False)
    monkeypatch.setattr(service.follower, "recover", hang)
    monkeypatch.setattr(service.follower, "catch_up", hang)
    service._retry_at = 0.0
    for _ in range(5):
        with pytest.raises(JournalUnavailable, match="does not answer"):
            service.call(DecisionRequest(X, "a", context={"n": 1}))
    assert len(asked) == 1


def test_a_failure_after_a_first_commit_leaves_its_calls_answered(drive, monkeypatch):
    """The outcome of a decision of the same batch is written by a second commit."""
    driver = drive()
    append, store = driver.store.append, driver.store

    def full_the_second_time(events, **after):
        def full(events, **after):
            raise JournalFull("the disk is full")

        monkeypatch.setattr(store, "append", full)
        return append(events, **after)

    monkeypatch.setattr(store, "append", full_the_second_time)
    made, answered = driver.service.commit(
        [Call(DecisionRequest(X, "a")), Call(OutcomeRequest("a", hit=True))]
    )
    assert (made.error, list(made.result.labels)) == (None, driver.find("a").labels)
    assert isinstance(answered.error, JournalFull)
    assert driver.outage is answered.error


def test_what_was_durable_though_it_failed_is_answered_the_same_when_it_is_sent_again(drive, monkeypatch):
    driver = drive()
    driver.decide(DecisionRequest(X, "a"))
    requests = [DecisionRequest(X, "b"), OutcomeRequest("a", hit=True), Freeze()]

    def fail(events):
        raise JournalUnavailable("say, the database went away after the commit")

    with monkeypatch.context() as patch:
        patch.setattr(driver.service.follower, "apply", fail)
        calls = driver.service.commit([Call(request) for request in requests])
    assert [type(call.error) for call in calls] == [JournalUnavailable] * 3
    assert driver.seq == 4  # all are durable
    driver.recover()
    made, answered, frozen = driver.together(requests)
    assert list(made.labels) == driver.find("b").labels
    assert answered.outcome.hit
    assert (frozen, driver.seq, driver.frozen) == (None, 4, True)
