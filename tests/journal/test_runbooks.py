"""The runbooks of docs/operations.md, played."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from journal_kit import Driver, bits, replayed, sha256_of, superarm
from service_kit import LABELS, rows

from superarm.journal.backup import backup
from superarm.journal.errors import JournalDamaged, JournalFull, JournalUnavailable
from superarm.journal.verify import verify
from superarm.service import DecisionRequest, OutcomeRequest
from superarm.service.request_errors import UnknownDecision


def work(driver, n, seed, wrong=False):
    """Rows whose right label is the largest of the first five numbers; hits among the last half."""
    hits = []
    for X in np.split(rows(n, seed), n // 20):
        shown = driver.together([DecisionRequest(x) for x in X])
        right = [LABELS[int(x.argmax())] in made.labels for x, made in zip(X, shown, strict=True)]
        pairs = zip(shown, right, strict=True)
        driver.together([OutcomeRequest(made.id, hit=hit and not wrong) for made, hit in pairs])
        hits += right
    return float(np.mean(hits[n // 2 :]))


def test_the_model_was_spoilt(drive):
    driver = drive()
    good = work(driver, 1200, 0)
    driver.snapshot()
    work(driver, 900, 1, wrong=True)
    assert driver.stats.falling
    assert any("hit rate has fallen" in sentence for sentence in driver.problems())
    driver.freeze()
    spoilt = work(driver, 200, 2)
    before = max(driver.kept())
    driver.rollback(before)
    mended = work(driver, 200, 2)
    driver.unfreeze()
    assert spoilt < good - 0.1
    assert mended > spoilt + 0.1
    assert replayed(driver, from_start=True).same


def test_a_disk_is_full(drive):
    driver = drive(max_journal_mb=1)
    kept, error = driver.fill_until_down()
    assert not driver.ready
    assert isinstance(error, JournalFull)
    assert driver.outage is error
    assert len(kept) > 50
    assert driver.find(kept[-1]) is not None  # looking goes on
    for refused in (
        lambda: driver.decide(DecisionRequest(rows(1)[0])),
        lambda: driver.outcome(OutcomeRequest(kept[0], hit=True)),
        driver.recover,  # still full
    ):
        with pytest.raises(JournalUnavailable):
            refused()
    driver.store.max_mb = 10
    driver.recover()
    assert driver.ready
    assert (driver.stats.decisions, driver.learner.round) == (len(kept), len(kept))
    driver.outcome(OutcomeRequest(kept[0], hit=True))
    assert verify(driver.store.path).replayed.sha256 == sha256_of(driver)


def test_restore(drive, tmp_path):
    driver = drive()
    driver.run(30)
    backup(tmp_path / "events.db", tmp_path / "monday.db")
    driver.run(30, "e", seed=1)
    # not like this: under the running service
    path = tmp_path / "events.db"
    path.rename(tmp_path / "events.db.broken")
    shutil.copy(tmp_path / "monday.db", path)
    with pytest.raises(JournalUnavailable, match="stop it, put the file in its place, and start it"):
        driver.decide(DecisionRequest(rows(1)[0], "lost"))
    driver.store.close()
    # and not with the log or the mark of the file before
    with pytest.raises((JournalDamaged, JournalUnavailable)):
        drive()
    for end in ("-wal", "-shm", "-mark"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    shutil.copy(tmp_path / "monday.db", path)
    shutil.copy(tmp_path / "monday.db-mark", tmp_path / "events.db-mark")
    done = superarm("verify", path)
    assert done.returncode == 0, done.stdout
    again = Driver.open(path, create=False)
    assert again.seq == 30
    again.outcome(OutcomeRequest("d3", hit=True))
    again.close()


def test_the_journal_has_grown_too_big(drive, tmp_path):
    def succeed(*arguments):
        done = superarm(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    driver = drive()
    driver.set_explore("rank", 0.2)
    work(driver, 200, 0)
    driver.decide(DecisionRequest(rows(1)[0], "old"))
    driver.outcome(OutcomeRequest("old", hit=True))
    assert driver.stats.pending == 0
    model, learnt, before = driver.model_file(), bits(driver.learner), driver.learner.round
    driver.close()
    succeed("export", "events.db", "--output", "log.jsonl")
    succeed("backup", "events.db", "copy.db")
    succeed("replay", "events.db", "--output", "model.npz")
    assert (tmp_path / "model.npz").read_bytes() == model
    (tmp_path / "2026").mkdir()
    for file in tmp_path.glob("events.db*"):
        file.rename(tmp_path / "2026" / file.name)
    driver = drive(model=tmp_path / "model.npz")
    assert bits(driver.learner) == learnt
    assert [driver.learner.params[name] for name in ("explore", "uniform")] == ["rank", 0.2]
    assert (driver.learner.round, driver.seq, driver.stats.decisions) == (before, 0, 0)
    with pytest.raises(UnknownDecision):
        driver.outcome(OutcomeRequest("old", hit=True))
    driver.decide(DecisionRequest(rows(1)[0], "old"))  # a new decision
    work(driver, 100, 1)
    driver.close()
    succeed("verify", "events.db")
    succeed("verify", "2026/events.db")


@pytest.mark.parametrize("mark", ["kept", "restored", "gone"])
@pytest.mark.parametrize("later", [0, 3, 5, 12, 60])
@pytest.mark.parametrize("emptied", [True, False])
def test_a_log_that_is_left_beside_a_restored_file_makes_it_whole_or_is_refused(
    drive, tmp_path, emptied, later, mark
):
    """A file of Monday with the log of Tuesday: never a mixture of both."""
    driver = drive()
    work(driver, 100, 0)
    backup(tmp_path / "events.db", tmp_path / "monday.db")
    work(driver, 20, 1)
    if emptied:  # what these 20 have written is in no log any more
        driver.store.purge_erased()
    driver.snapshot()  # a start would read only what comes after it
    driver.run(later, "later", seed=2)
    last = driver.seq
    path = tmp_path / "restored" / "events.db"
    path.parent.mkdir()
    shutil.copy(tmp_path / "monday.db", path)
    shutil.copy(tmp_path / "events.db-wal", path.with_name("events.db-wal"))
    if mark != "gone":
        of = "events.db" if mark == "kept" else "monday.db"
        shutil.copy(tmp_path / f"{of}-mark", path.with_name("events.db-mark"))
    try:
        again = Driver.open(path, create=False)
    except JournalDamaged as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "take the files events.db-wal" in refused or "has lost its last events" in refused
    else:
        assert mark != "kept"  # that one tells whose log it is
        assert again.seq == last or again.seq == 200  # all of it, or what was restored
        again.store.close()
        result = verify(path)
        assert result.ok, result.problems
