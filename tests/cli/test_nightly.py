"""superarm decide and superarm learn: files tonight, answers tomorrow, each learnt from once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import polars as pl
import pytest

import superarm as sa
from superarm.errors import FeedbackError, InvalidInput
from superarm.logs import Log, Policy, evaluate, nightly, summarize
from superarm.logs.nightly import decide_file, learn_file

LABELS = ["ant", "bee", "cat", "dog"]


def people(n: int, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"p{seed}-{i}" for i in range(n)],
            "age": random.integers(18, 80, n),
            "city": random.choice(["Rome", "Oslo", "Lima"], n).tolist(),
            "vip": random.random(n) < 0.5,
            "joined": pl.Series(["2024-05-01", "2023-01-02"] * (n // 2)).str.to_date(),
        }
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    sa.SetLogit(labels=LABELS, set_size=2, seed=5).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def bits(path: Path) -> Any:
    learner = sa.load(path)
    return (
        {name: a.tobytes() for name, a in learner.core.state().items()},
        learner.round,
        learner.answered.count,
    )


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "superarm", *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def test_two_nights_are_the_library_calls(model: Path, tmp_path: Path) -> None:
    twin = sa.load(model)
    for night in range(2):
        rows = people(60, night)
        rows.write_parquet(tmp_path / "rows.parquet")
        assert decide_file(model, tmp_path / "rows.parquet", tmp_path / "d.parquet").rows == 60
        made = pl.read_parquet(tmp_path / "d.parquet")
        assert made["id"].to_list() == rows["id"].to_list()
        decisions = twin.decide_many(rows.drop("id"))
        assert made["labels"].to_list() == decisions.labels.tolist()
        hits = [i % 3 == 0 for i in range(60)]
        answers = pl.DataFrame({"id": rows["id"], "hit": hits})[:50].sample(
            fraction=1.0, shuffle=True, seed=1
        )
        answers.write_csv(tmp_path / "a.csv")
        result = learn_file(model, tmp_path / "d.parquet", tmp_path / "a.csv")
        assert (result.learnt, result.already_learnt, result.unanswered, result.unknown) == (50, 0, 10, 0)
        twin.update_many(decisions[:50], hits[:50])
    twin.save(tmp_path / "twin.npz")
    assert bits(model) == bits(tmp_path / "twin.npz")


def test_answers_of_an_older_rule_move_no_new_promise(tmp_path: Path) -> None:
    """Between decide and learn, the rule may be replaced: the new one must not read the draw logs of the old one."""
    model, live, made = tmp_path / "model.npz", tmp_path / "live.npz", tmp_path / "d.parquet"
    labels = [f"l{i}" for i in range(40)]
    sa.SetLogit(labels=labels, set_size=2, seed=5).save(model)
    rows = people(60).drop("joined")
    rows.write_parquet(tmp_path / "rows.parquet")
    twin = sa.load(model)
    decisions = twin.decide_many(rows.drop("id"))
    ran = command("decide", model, tmp_path / "rows.parquet", "--output", made)
    assert ran.returncode == 0, ran.stderr
    for path, learner in ((model, sa.load(model)), (live, twin)):
        learner.with_new_rule(coverage=0.9, explore=None).save(path)
    hits = [i % 3 == 0 for i in range(60)]
    pl.DataFrame({"id": rows["id"], "hit": hits}).write_csv(tmp_path / "a.csv")
    ran = command("learn", model, made, tmp_path / "a.csv")
    assert ran.returncode == 0, ran.stderr
    twin = sa.load(live)
    twin.update_many(decisions, hits)
    twin.save(live)
    assert bits(model) == bits(live)
    coverage = sa.load(model).coverage
    assert coverage is not None
    assert coverage.answers == 0.0


def test_the_same_answers_twice(model: Path, tmp_path: Path) -> None:
    rows, made, said = tmp_path / "rows.csv", tmp_path / "d.parquet", tmp_path / "a.jsonl"
    people(20).write_csv(rows)
    decide_file(model, rows, made)
    pl.DataFrame({"id": [f"p0-{i}" for i in range(10)], "label": ["ant"] * 10}).write_ndjson(said)
    assert learn_file(model, made, said).learnt == 10
    before = model.read_bytes()
    again = learn_file(model, made, said)
    assert (again.learnt, again.already_learnt, again.unanswered) == (0, 10, 10)
    assert model.read_bytes() == before
    pl.DataFrame({"id": [f"p0-{i}" for i in range(5, 20)], "label": ["bee"] * 15}).write_ndjson(said)
    later = learn_file(model, made, said)
    assert (later.learnt, later.already_learnt, later.unanswered) == (10, 5, 0)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_answered_decisions_are_a_log(model: Path, tmp_path: Path, ending: str) -> None:
    rows, made, log = people(60), tmp_path / "d.parquet", tmp_path / f"log.{ending}"
    rows.write_parquet(tmp_path / "rows.parquet")
    decide_file(model, tmp_path / "rows.parquet", made)
    twin = sa.load(model)
    pl.DataFrame({"id": rows["id"], "hit": [True, False] * 30})[:40].write_csv(tmp_path / "a.csv")
    for _ in range(2):  # the second time nothing is learnt, and the log is the same
        assert learn_file(model, made, tmp_path / "a.csv", log=log).logged == 40
        records = list(Log(log))
        assert [record.hit for record in records] == [True, False] * 20
        assert [record.id for record in records] == rows["id"][:40].to_list()
    shown = pl.read_parquet(made)
    first, x = records[0].decision, records[0].decision.x
    assert (x["age"], x["city"]) == (rows["age"][0], rows["city"][0])  # by name, not by place
    assert [record.decision.labels for record in records] == shown["labels"][:40].to_list()
    assert first.propensity == pytest.approx(shown["propensity"][0])
    answer = evaluate(Log(log), [Policy("top", learner=twin)], summarize(Log(log)), holdout=None)
    assert answer.warnings == ()  # all labels were tied: that the top set was shown is no surprise


def test_a_log_of_labels_and_of_nothing(model: Path, tmp_path: Path) -> None:
    made, log = tmp_path / "d.parquet", tmp_path / "log.parquet"
    people(20).write_csv(tmp_path / "rows.csv")
    decide_file(model, tmp_path / "rows.csv", made)
    (tmp_path / "a.csv").write_text("id,label\n")
    assert learn_file(model, made, tmp_path / "a.csv", log=log).logged == 0
    assert not log.exists()
    (tmp_path / "a.csv").write_text("id,label\np0-3,cat\n")
    assert learn_file(model, made, tmp_path / "a.csv", log=log).logged == 1
    assert [record.label for record in Log(log)] == ["cat"]
    with pytest.raises(InvalidInput, match="folder"):
        learn_file(model, made, tmp_path / "a.csv", log=tmp_path / "none" / "log.parquet")


def test_labels_with_blanks_around_them_are_those_labels(model: Path, tmp_path: Path) -> None:
    rows, made, answers = tmp_path / "rows.csv", tmp_path / "d.parquet", tmp_path / "a.csv"
    people(2).write_csv(rows)
    decide_file(model, rows, made)
    answers.write_text(f'id,label\np0-0," {LABELS[0]} "\np0-1,{LABELS[1]}\n')
    assert learn_file(model, made, answers).learnt == 2


def test_plain_models_and_matrices(tmp_path: Path) -> None:
    model, X = tmp_path / "model.npz", np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    sa.MCDBF(n_labels=5, n_features=3, set_size=2).save(model)
    np.save(tmp_path / "rows.npy", X)
    np.savez(tmp_path / "rows.npz", X=X)
    pl.DataFrame(X, schema=["a", "b", "c"]).write_csv(tmp_path / "rows.csv")
    for name in ("rows.npy", "rows.npz", "rows.csv"):
        assert decide_file(model, tmp_path / name, tmp_path / "d.parquet", set_size=1).rows == 30
    made = pl.read_parquet(tmp_path / "d.parquet")
    assert made["id"].to_list() == [str(i) for i in range(60, 90)]  # no ids: the rounds
    pl.DataFrame({"round": [60, 61], "yes": [1, 0]}).write_csv(tmp_path / "a.csv")
    columns = {"id_column": "round", "hit_column": "yes"}
    assert learn_file(model, tmp_path / "d.parquet", tmp_path / "a.csv", **columns).learnt == 2


def test_what_is_refused(model: Path, tmp_path: Path) -> None:
    rows, made = tmp_path / "rows.csv", tmp_path / "d.parquet"
    people(4).write_csv(rows)
    decide_file(model, rows, made)
    good = model.read_bytes()

    def file(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    other = tmp_path / "other.npz"
    sa.SetLogit(labels=LABELS, set_size=2).save(other)
    plain = tmp_path / "plain.npz"
    sa.SetLogit(labels=LABELS, set_size=2, n_features=3).save(plain)
    answers = file("a.csv", "id,hit\np0-0,yes\n")
    decide, learn = partial(decide_file, model), partial(learn_file, model, made)
    npy, npz = tmp_path / "none.npy", tmp_path / "none.npz"
    refused: list[tuple[Any, str]] = [
        (lambda: decide_file(npz, rows, made), "no such file: .*none.npz"),
        (lambda: decide(tmp_path / "none.csv", made), "no such file: .*none.csv"),
        (lambda: decide(npy, made), "no such file: .*none.npy"),
        (lambda: decide(rows, tmp_path / "d.csv"), "a .parquet file"),
        (lambda: decide(rows, made, id_column="name"), "id_column of .* must be one of id, age"),
        (
            lambda: decide(file("twice.csv", "id,a\n1,2\n1,3\n"), made, id_column="id"),
            "without such a column, rounds are the ids",
        ),
        (lambda: decide(file("empty.csv", "id,a\n"), made), "empty.csv has no rows"),
        (lambda: decide(file("bad.parquet", "no"), made), "a Parquet file"),
        (lambda: decide(file("rows.txt", "no"), made), "ending of"),
        (lambda: decide(file("bad.npz", "no"), made), "a matrix"),
        (lambda: decide_file(plain, rows, made), "columns for the 3 features"),
        (lambda: decide_file(plain, file("w.csv", "a,b,c\n1,2,x\n"), made), "c of .*row 1 must be a number"),
        (lambda: learn_file(other, made, answers), "learner of .* must be that of"),
        (lambda: learn_file(model, answers, answers), "what superarm decide wrote"),
        (lambda: learn(file("empty.csv", "")), "empty.csv is empty"),
        (lambda: learn(file("b.csv", "name,hit\nx,1\n")), "id_column"),
        (lambda: learn(file("b.csv", "id,said\nx,1\n")), "a column hit or label"),
        (lambda: learn(file("b.csv", "id,hit\nx,1\n")), "ids of"),
        (lambda: learn(file("b.csv", "id,hit\np0-0,1\np0-0,0\n")), "answered once"),
        (lambda: learn(file("b.csv", "id,hit\np0-0,maybe\n")), "true or false"),
        (lambda: learn(file("b.csv", "id,label\np0-0,fox\n")), "known labels"),
    ]
    for call, message in refused:
        with pytest.raises((InvalidInput, FeedbackError), match=message):
            call()
    assert model.read_bytes() == good
    assert not list(tmp_path.glob(".*"))
    # unknown ids beside known ones, and the same answer twice, are fine
    some = file("some.csv", "id,hit\np0-0,yes\np0-0,yes\nzzz,no\n")
    result = learn_file(model, made, some)
    assert (result.learnt, result.unknown) == (1, 1)


def test_a_model_changed_meanwhile_is_left_alone(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(4).write_csv(tmp_path / "rows.csv")
    real = nightly._read_rows

    def slow(*arguments: Any) -> Any:
        sa.SetLogit(labels=LABELS, set_size=2, seed=9).save(model)
        return real(*arguments)

    monkeypatch.setattr(nightly, "_read_rows", slow)
    with pytest.raises(InvalidInput, match="nothing was written, run it again"):
        decide_file(model, tmp_path / "rows.csv", tmp_path / "d.parquet")
    assert sa.load(model).seed == 9
    assert not (tmp_path / "d.parquet").exists()


def test_of_two_commands_that_end_at_once_one_is_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, made = tmp_path / "rows.csv", tmp_path / "d.parquet"
    people(20).write_csv(rows)
    decide_file(model, rows, made)
    answers = [tmp_path / f"{i}.csv" for i in range(2)]
    for i, path in enumerate(answers):
        path.write_text("id,hit\n" + "".join(f"p0-{10 * i + j},yes\n" for j in range(10)))
    real_read, real_save, both_loaded = nightly._read_answers, sa.SetLogit.save, Barrier(2)

    def read(*arguments: Any) -> Any:
        both_loaded.wait(60)
        return real_read(*arguments)

    def slow_save(self: Any, path: Any) -> None:
        time.sleep(0.5)
        real_save(self, path)

    def learn(path: Path) -> str:
        try:
            return f"learnt {learn_file(model, made, path).learnt}"
        except InvalidInput as error:
            return str(error)

    monkeypatch.setattr(nightly, "_read_answers", read)
    monkeypatch.setattr(sa.SetLogit, "save", slow_save)
    with ThreadPoolExecutor() as threads:
        refused, learnt = sorted(threads.map(learn, answers))
    assert refused.endswith("was changed while this command ran: nothing was written, run it again")
    assert learnt == "learnt 10"
    assert sa.load(model).answered.count == 10


def test_on_the_command_line(model: Path, tmp_path: Path) -> None:
    rows, made, said = tmp_path / "rows.csv", tmp_path / "d.parquet", tmp_path / "a.csv"
    people(30).write_csv(rows)
    done = command("decide", model, rows, "--output", made)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"{made}: 30 decisions"
    pl.DataFrame({"id": [f"p0-{i}" for i in range(25)], "hit": [True] * 25}).write_csv(said)
    done = command("learn", model, made, said)
    assert done.stdout == f"{model}: learnt from 25 answers\n5 decisions have no answer yet\n"
    done = command("learn", model, made, said, "--json")
    assert json.loads(done.stdout) == {
        "model": str(model),
        "learnt": 0,
        "already_learnt": 25,
        "unanswered": 5,
        "unknown": 0,
        "logged": 0,
    }
    done = command("learn", model, made, tmp_path / "none.csv")
    assert done.returncode == 2
    assert done.stderr.strip().startswith("superarm: no such file: ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_folder_of_pictures_is_refused_with_what_to_do(model: Path, tmp_path: Path) -> None:
    done = command("decide", model, tmp_path, "--output", tmp_path / "d.parquet")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert "ROWS of superarm decide must be a file (of texts, a table with a column text; of pictures" in told


def test_killed_at_any_time(model: Path, tmp_path: Path) -> None:
    """kill -9 while it learns: the model is the old one or the new one, and a second run ends well."""
    rows, made, said = tmp_path / "rows.csv", tmp_path / "d.parquet", tmp_path / "a.csv"
    people(20_000).write_csv(rows)
    decide_file(model, rows, made)
    pl.DataFrame({"id": [f"p0-{i}" for i in range(20_000)], "hit": [True, False] * 10_000}).write_csv(said)
    old = model.read_bytes()
    for wait in (1.5, 2.5, 3.5):
        model.write_bytes(old)
        call = [sys.executable, "-m", "superarm", "learn", str(model), str(made), str(said)]
        process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        learnt = sa.load(model).answered.count
        assert learnt in (0, 20_000)
        result = learn_file(model, made, said)
        assert (result.learnt, result.already_learnt) == (20_000 - learnt, learnt)
