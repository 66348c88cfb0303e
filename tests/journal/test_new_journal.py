"""What a journal is made for: options, or a model file; later starts must agree."""

from __future__ import annotations

import numpy as np
import pytest
from journal_kit import replayed
from service_kit import LABELS, D, rows

import superarm as sa
from superarm.errors import InvalidInput
from superarm.journal.errors import JournalDamaged, JournalMismatch
from superarm.service import Service
from superarm.service.requests import DecisionRequest, context_bytes


def test_a_journal_remembers_what_it_was_made_for(drive, tmp_path):
    drive().close()
    driver = drive()
    assert driver.labels == tuple(LABELS)
    driver.close()
    wanted = (
        r"left out or the 6 labels \(number 1 is 'label-0'\), which .* made for, got 2 \(number 1 is 'x'\)"
    )
    with pytest.raises(JournalMismatch, match=wanted):
        drive(labels=["x", "y"])
    with pytest.raises(InvalidInput, match=r"labels of superarm serve must be names .* on one line, got"):
        drive("new.db", labels=["x", "y\nz"])
    assert not (tmp_path / "new.db").exists()
    for wrong in (
        {"n_features": 9},
        {"set_size": 3},
        {"learner": "mc-dbf"},
        {"seed": 7},
    ):
        with pytest.raises(JournalMismatch, match=r"which .*events\.db was made for"):
            drive(**wrong)


def test_the_size_of_a_database_is_not_ours_to_limit():
    wanted = "^max_journal_mb of superarm serve must be left out: the size of a database is limited by the"
    with pytest.raises(InvalidInput, match=wanted):
        Service.open("postgresql://serve@no-such-host/arms", labels=LABELS, max_journal_mb=10)


@pytest.mark.parametrize("left", ["-wal", "-mark"])
def test_no_journal_is_made_beside_what_is_left_of_a_lost_one(drive, tmp_path, left):
    driver = drive()
    driver.run(3)
    driver.close()
    (tmp_path / "events.db-wal").write_bytes(b"the log of a process that was killed")
    for name in {"events.db", "events.db-wal", "events.db-mark", "events.db.lock"} - {f"events.db{left}"}:
        (tmp_path / name).unlink()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        JournalDamaged, match=f"events.db is missing, and events.db{left} of it left. Put the"
    ):
        drive()
    assert sorted(tmp_path.iterdir()) == before
    (tmp_path / f"events.db{left}").unlink()
    assert drive().run(1)


@pytest.mark.parametrize("innermost", [[], {}, [1], {"a": None}])
def test_a_context_is_nested_at_most_64_deep(innermost):
    context = innermost
    for _ in range(63):
        context = [context]
    assert context_bytes(context)
    with pytest.raises(InvalidInput, match="nested at most 64 deep"):
        context_bytes([context])


def test_a_new_journal_must_be_told_what_for(drive):
    with pytest.raises(InvalidInput, match="needs --labels for a new journal"):
        drive(labels=None)


def test_a_new_journal_can_start_with_a_model(drive, tmp_path):
    learner = sa.SetLogit(labels=LABELS, n_features=D, set_size=2, seed=3)
    for x in rows(50):
        learner.update(learner.decide(x), hit=False)
    learner.save(tmp_path / "model.npz")
    driver = drive(model=tmp_path / "model.npz", learner="set-logit:uniform=0")
    assert driver.model_file() == (tmp_path / "model.npz").read_bytes()
    assert driver.decide(DecisionRequest(rows(1)[0])).labels == learner.decide(rows(1)[0]).labels
    with pytest.raises(JournalMismatch, match="seed"):
        drive("other.db", model=tmp_path / "model.npz", seed=4)


@pytest.mark.parametrize("asked", [{"set_size": 3}, {"coverage": 0.9}, {"coverage": 0.9, "set_size": 4}])
def test_a_model_of_one_label_can_be_served_with_more(drive, tmp_path, asked):
    """As `labels export --model` writes it; the next step is a short list."""
    learner = sa.SetLogit(labels=LABELS, n_features=D)
    for i, x in enumerate(rows(50)):
        learner.update(learner.decide(x), label=LABELS[i % 6])
    learner.save(tmp_path / "model.npz")
    driver = drive(model=tmp_path / "model.npz", **asked)
    served = driver.learner
    assert served.set_size == asked.get("set_size", len(LABELS))
    assert (None if served.coverage is None else served.coverage.promised) == asked.get("coverage")
    assert (served.round, served.id) == (50, learner.id)
    np.testing.assert_array_equal(served.scores(rows(5)), learner.scores(rows(5)))
    driver.run(20, hits=lambda i: True)
    assert replayed(driver, from_start=True).same
    driver.close()
    drive(**asked).close()  # it may be said again, and nothing else
    with pytest.raises(JournalMismatch, match=r"events\.db was made for"):
        drive(set_size=2)


def test_a_learner_of_single_labels_stays_one(drive, tmp_path):
    sa.Banditron(labels=LABELS, n_features=D).save(tmp_path / "model.npz")
    with pytest.raises(InvalidInput, match="set_size of Banditron must be 1"):
        drive(model=tmp_path / "model.npz", set_size=3)
    with pytest.raises(InvalidInput, match="coverage of Banditron must be"):
        drive(model=tmp_path / "model.npz", coverage=0.9)
    assert not list(tmp_path.glob("*.db"))


def test_a_model_draws_uniform_sets_too_unless_it_was_told_otherwise(drive, tmp_path):
    common = {"labels": LABELS, "n_features": D, "set_size": 2}
    learner = sa.SetLogit(**common)
    for x in rows(50):
        learner.update(learner.decide(x), hit=False)
    learner.save(tmp_path / "plain.npz")
    served = drive("plain.db", model=tmp_path / "plain.npz").learner
    assert (served.uniform, served.round, served.id) == (0.02, 50, learner.id)
    np.testing.assert_array_equal(served.scores(rows(5)), learner.scores(rows(5)))
    for number, own in enumerate(({"explore": "show"}, {"uniform": 0.3}, {"coverage": 0.9})):
        sa.SetLogit(**common, **own).save(tmp_path / "own.npz")
        driver = drive(f"own{number}.db", model=tmp_path / "own.npz")
        assert driver.learner.uniform == own.get("uniform", 0.0)
    sa.MCDBF(**common).save(tmp_path / "other.npz")
    assert "uniform" not in drive("other.db", model=tmp_path / "other.npz").learner.params


def test_labels_that_are_numbers_become_names(drive, tmp_path):
    numbers = sa.SetLogit(n_labels=4, n_features=D, set_size=2)
    for x in rows(20):
        numbers.update(numbers.decide(x), hit=True)
    numbers.save(tmp_path / "numbers.npz")
    driver = drive(model=tmp_path / "numbers.npz", learner="set-logit:uniform=0")
    assert driver.learner.labels == ("0", "1", "2", "3")
    assert driver.decide(DecisionRequest(rows(1)[0])).labels == [
        str(label) for label in numbers.decide(rows(1)[0]).labels
    ]
    names = ["0", "1", "2", "3"]
    assert drive("named.db", model=tmp_path / "numbers.npz", labels=names).learner.labels == tuple(names)
    with pytest.raises(JournalMismatch, match=r"left out or the 4 labels \(number 1 is '0'\), which"):
        drive("other.db", model=tmp_path / "numbers.npz", labels=["a", "b", "c", "d"])


def test_labels_may_be_an_array(drive):
    drive(labels=np.array(LABELS)).close()
    assert drive(labels=np.array(LABELS)).labels == tuple(LABELS)


@pytest.mark.parametrize(
    ("name", "other"), [("model", ".model.npz.77-1.part"), ("a[0-9].db", ".a1.db.77-1.part")]
)
def test_parts_of_other_files_are_left_alone(drive, tmp_path, name, other):
    (tmp_path / other).write_text("of another process")
    own = tmp_path / f".{name}.77-1.part-wal"
    own.write_text("left by a crash")
    drive(name)
    assert (tmp_path / other).exists()
    assert not own.exists()
