"""What an evaluation says where the log cannot answer: the reason, and only remedies that help."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from lab_kit import run

import superarm as sa
from superarm.errors import InvalidInput
from superarm.logs import (
    Evaluation,
    Log,
    LogColumns,
    Policy,
    PolicyResult,
    RequiredData,
    Writer,
    evaluate,
    summarize,
)
from superarm.logs.evaluation import weight_warnings

K, M = 8, 3
SCORES = [f"s{label}" for label in range(K)]


@cache
def logged(n: int = 3000, factor: float = 1.0, known: float = 1.0) -> pl.DataFrame:
    """Sets of three of eight labels, uniform in four rows of ten; propensities times ``factor``, some unknown."""
    random = np.random.default_rng(0)
    W = random.normal(size=(4, K)) * 1.5
    X = random.normal(size=(n, 4))
    y = (X @ W + random.gumbel(size=(n, K))).argmax(axis=1)
    rows = []
    for x, label in zip(X, y, strict=True):
        top = np.argsort(-(x @ W + random.normal(size=K)))[:M]
        shown = top if random.random() < 0.6 else random.permutation(K)[:M]
        p = 0.4 / 56 + 0.6 * (set(shown) == set(top))
        rows.append(
            {
                "a": x[0],
                "shown": ";".join(f"l{one}" for one in shown),
                "solved": "y" if label in shown else "n",
                "p": min(1.0, factor * p) if random.random() < known else None,
                **dict(zip(SCORES, x @ W, strict=True)),
            }
        )
    return pl.DataFrame(rows)


COLUMNS = LogColumns(labels=("shown",), hit="solved", propensity="p", features=("a",))


def judged(frame: pl.DataFrame, *sizes: int, **options: Any) -> Evaluation:
    log = Log(frame, columns=COLUMNS)
    log.keep_columns(SCORES)  # before the first reading
    policies = [Policy("s", scores=SCORES, set_size=m) for m in sizes]
    labels = [f"l{label}" for label in range(K)]
    return evaluate(log, policies, summarize(log, labels=labels), holdout=None, **options)


def test_propensities_that_are_too_large_are_told_and_nothing_follows_from_smaller_sets() -> None:
    fine = judged(logged(), 2, 3, 4)
    assert fine.warnings == ()
    assert all(result.best is not None for result in fine.results)
    wrong = judged(logged(factor=1.6), 2, 3, 4)
    assert "The propensities are too large, or some sets could not be shown" in wrong.warnings[0]
    failed = [result for result in wrong.results if result.required.propensities]
    assert failed
    assert all(result.best is None for result in failed)
    assert not any(estimate.name == "nested" for result in wrong.results for estimate in result.estimates)


def test_propensities_that_are_too_small_have_no_remedy() -> None:
    [result] = judged(logged(factor=0.6), 3).results
    assert (result.best, result.required.propensities) == (None, "wrong")
    assert (result.required.rows, result.required.uniform) == (None, None)


def test_weights_that_do_not_average_one_warn_about_the_log() -> None:
    def result(name: str, propensities: Any) -> PolicyResult:
        return PolicyResult(name, 2, None, (), RequiredData(None, None, propensities), 2.0, 0.5)

    assert list(weight_warnings([result("fine", ""), result("half", "missing")])) == []
    [doubt] = weight_warnings([result("fine", ""), result("low", "doubtful")])
    assert doubt.startswith("The log's propensities are wrong, or some sets could not be shown: weights do")
    [wrong] = weight_warnings([result("low", "doubtful"), result("high", "wrong")])
    assert wrong.startswith("The log's propensities are wrong: weights do not average 1 for high, m = 2")


def test_rows_without_a_propensity_can_be_left_out(tmp_path: Path) -> None:
    half = logged(n=6000, known=0.5)
    [result] = judged(half[:1000], 3).results
    assert (result.best, result.required.propensities, result.required.uniform) == (None, "missing", None)
    part = judged(half, 3, with_propensity=True)
    assert part.rows == half["p"].drop_nulls().len()
    [with_propensity], [all_known] = part.results, judged(half.drop_nulls("p"), 3).results
    assert with_propensity.best is not None
    assert all_known.best is not None
    assert with_propensity.best.value == pytest.approx(all_known.best.value, abs=0.003)  # q knows more rows
    half[:600].write_csv(tmp_path / "half.csv")
    options = ("--labels-column", "shown", "--hit-column", "solved", "--fixed", "l0,l1,l2")
    told = run("evaluate", tmp_path / "half.csv", *options, "--propensity-column", "p")
    remedy = told.split("cannot answer for this policy; ")[1]
    assert remedy.startswith("judge by the rows that have a propensity, if it is chance which lack one (--")
    assert "uniform" not in remedy
    told = run("evaluate", tmp_path / "half.csv", *options, "--propensity-column", "p", "--with-propensity")
    assert f"judged by {half[:600]['p'].drop_nulls().len()} rows" in told
    half[:600].drop("p").write_csv(tmp_path / "none.csv")
    told = run("evaluate", tmp_path / "none.csv", *options)
    assert "for this policy; it takes a propensity (or the rule) with every decision." in told


def covered(folder: Path, coverage: float) -> tuple[Path, Path]:
    """The log of a learner that promises a coverage, shows one label with certainty at last, and its model."""
    random = np.random.default_rng(1)
    W = random.normal(size=(5, 6))
    X = random.normal(size=(3000, 5)).astype(np.float32)
    learner = sa.SetLogit(n_labels=6, n_features=5, coverage=coverage, seed=0)
    with Writer(folder / "log.parquet") as writer:
        sa.simulate(learner, sa.streams.Arrays(X, (X @ W).argmax(axis=1)), 3000, log=writer)
    learner.save(folder / "m.npz")
    return folder / "log.parquet", folder / "m.npz"


def test_fewer_labels_tell_what_more_hit_at_least(tmp_path: Path) -> None:
    log, model = covered(tmp_path, 0.9)
    told = run("evaluate", log, "--model", model, "--set-size", 4)
    assert "; 5% of uniform sets in as many rows would; fewer labels may tell how often it hits at " in told
    assert "at least: --set-size 1,2,3,4 --grid" in told
    assert "by superarm train, and has learnt from 3,000 answers to its own decisions: make sure" in told
    told = run("evaluate", log, "--model", model, "--set-size", "1,2,3,4", "--grid")
    assert "nested" in told  # of two labels and more
    with pytest.raises(InvalidInput, match="--set-size of evaluate must be one number; add --grid to"):
        run("evaluate", log, "--model", model, "--set-size", "1,2")


def test_fewer_labels_tell_it_for_columns_of_scores_too(tmp_path: Path) -> None:
    path, model = covered(tmp_path, 0.9)
    log, columns = pl.read_parquet(path), [f"s{label}" for label in range(6)]
    scores = sa.load(model).scores(np.array(log["x"].to_list(), np.float32))
    log.with_columns(pl.DataFrame(scores, schema=columns)).write_parquet(tmp_path / "scored.parquet")
    (tmp_path / "labels.txt").write_text("0\n1\n2\n3\n4\n5\n")
    options = (
        "--scores",
        ",".join(columns),
        "--labels",
        tmp_path / "labels.txt",
        "--set-size",
        "1,2,3,4",
        "--grid",
    )
    assert "nested" in run("evaluate", tmp_path / "scored.parquet", *options)


def test_no_more_uniform_sets_than_the_coverage_allows(tmp_path: Path) -> None:
    log, model = covered(tmp_path, 0.97)
    told = run("evaluate", log, "--model", model, "--set-size", 4)
    assert "the log never shows a set" in told or "could not show its sets" in told
    assert "of uniform sets" not in told


def test_json_names_the_estimate_to_read(tmp_path: Path) -> None:
    logged().write_csv(tmp_path / "log.csv")
    options = ("--labels-column", "shown", "--hit-column", "solved", "--propensity-column", "p", "--json")
    fixed = ("--fixed", "l0,l1,l2", "--fixed", "l0,l1,l2,l3")
    results = json.loads(run("evaluate", tmp_path / "log.csv", *options, *fixed))["results"]
    expected = [
        min((e for e in one["estimates"] if not e["problem"]), key=lambda e: e["width"])["name"]
        for one in results
    ]
    assert [one["best"] for one in results] == expected
    logged(n=50).write_csv(tmp_path / "log.csv")
    results = json.loads(run("evaluate", tmp_path / "log.csv", *options, *fixed))["results"]
    assert [one["best"] for one in results] == [None, None]


@pytest.mark.parametrize("part", ["hit", "label", "propensity", "eligible"])
def test_a_column_that_is_named_must_be_there(part: str, tmp_path: Path) -> None:
    names = {"labels": ("shown",), "hit": "solved", "propensity": "p"}
    frame = logged(n=300).with_columns(label=pl.lit(None, pl.String))
    with pytest.raises(InvalidInput, match=f"{part} column of .* must be one of a, shown, .* got 'pp'"):
        Log(frame, columns=LogColumns(**{**names, part: "pp"}))
    late = [{"a": i, "labels": ["x", "y"], "hit": True} for i in range(400)]
    late.append({"a": 1, "labels": ["x", "z"], "hit": True, "chance": 0.5})
    lines = tmp_path / "late.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in late))
    assert summarize(Log(lines, columns=LogColumns(propensity="chance"))).with_propensity == 1


def test_a_propensity_column_can_be_left_out() -> None:
    columns = LogColumns(labels=("shown",), hit="solved", propensity=None, features=("a",))
    assert summarize(Log(logged(n=50), columns=columns)).with_propensity == 0
