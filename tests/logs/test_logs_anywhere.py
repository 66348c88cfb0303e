"""Logs from anywhere: frames, Vowpal Wabbit, Open Bandit Pipeline, and other people's CSV files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lab_kit import run
from logged import write_log

import superarm as sa
from superarm.decisions.logged_decision import COLUMNS, LOG_FORMAT
from superarm.errors import InvalidInput
from superarm.logs import BadRow, Log, LogColumns, Policy, Writer, evaluate, summarize, train
from superarm.logs.batches import LogBatch

TEAMS = ["books", "garden", "music", "toys"]


def table(n=400, seed=0):
    """Two of four teams, uniformly; the right one has its own direction."""
    random = np.random.default_rng(seed)
    y = random.integers(4, size=n)
    shown = [random.permutation(TEAMS)[:2].tolist() for _ in range(n)]
    age, income = (turn(y * np.pi / 2) + 0.3 * random.normal(size=n) for turn in (np.cos, np.sin))
    hit = [TEAMS[label] in s for label, s in zip(y, shown, strict=True)]
    return {"age": age, "income": income, "labels": shown, "hit": hit}


# ---------------------------------------------------------------- frames


def test_frames_of_pandas_and_polars_are_logs(tmp_path):
    data = table()
    frames = [pd.DataFrame(data), pl.DataFrame(data), pl.DataFrame(data).lazy()]
    pl.DataFrame(data).write_parquet(tmp_path / "log.parquet")
    logs = [Log(frame, uniform=True) for frame in (*frames, tmp_path / "log.parquet")]
    assert {tuple(log.feature_columns.names) for log in logs} == {("age", "income")}
    read = [[(r.decision.labels, r.hit, r.decision.x.tolist()) for r in log] for log in logs]
    assert read[0] == read[1] == read[2] == read[3]
    assert {*logs[0].fingerprints()} == {*logs[1].fingerprints()} == {*logs[2].fingerprints()}
    summary = summarize(logs[0])
    learner = sa.SetLogit(**summary.learner_params)
    train(logs[0], learner, summary)
    answer = evaluate(logs[0], [Policy("model", learner=learner)], summary)
    assert answer.rows > 0


def test_gaps_of_pandas(tmp_path):
    frame = pd.DataFrame({"x": [[1.0], [2.0], [3.0]], "labels": ["a;b", "b;c", "a;c"], "hit": [1, None, 0]})
    assert [r.hit for r in Log(frame)] == [True, None, False]
    frame["hit"] = pd.array([True, None, False], dtype="boolean")
    frame["chance"] = [0.5, np.nan, 0.25]
    log = Log(frame, columns=LogColumns(propensity="chance"))
    assert [r.decision.propensity for r in log] == pytest.approx([0.5, None, 0.25])
    with pytest.raises(BadRow, match=r"hit of the pandas frame, row 2 must be true or false"):
        list(Log(pd.DataFrame({"x": [[1.0]] * 2, "labels": ["a;b"] * 2, "hit": ["1", "perhaps"]})))


@pytest.mark.parametrize("source", [3, [1, 2], None])
def test_what_is_no_log(source):
    with pytest.raises(InvalidInput, match="table of superarm must be a file, a pandas, Polars or Arrow"):
        Log(source)


# ---------------------------------------------------------------- Vowpal Wabbit


def decision_line(**changes):
    """One action out of three, as VW logs it."""
    return {
        "_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1,
        "Timestamp": "2026-01-01T00:00:00Z", "EventId": "e1", "a": [2, 1, 3], "p": [0.8, 0.15, 0.05],
        "c": {
            "User": {"age": 0.5, "city": "Rome"}, "Hour": [{"of_day": 13}],
            "_multi": [{"_tag": "news"}, {"i": {"constant": 1, "id": "sports"}}, {"T": {"a": 1}}],
        },
        "VWState": {"m": "x"},
    } | changes  # fmt: skip


def slate_line(**changes):
    """Two slots, of two and three actions."""
    return {
        "_label_cost": 0.0, "EventId": "s1",
        "_outcomes": [{"_id": "1", "_a": [1, 0], "_p": [0.7, 0.3]},
                      {"_id": "2", "_a": [0, 2, 1], "_p": [0.5, 0.3, 0.2]}],
        "c": {"User": {"age": 0.5}, "_multi": [{"_slot_id": 0}, {"_slot_id": 0}, {"_slot_id": 1},
                                               {"_slot_id": 1}, {"_slot_id": 1}], "_slots": [{}, {}]},
    } | changes  # fmt: skip


def vw(tmp_path, *lines, name="log.dsjson"):
    return write_log(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), name)


@pytest.mark.parametrize("name", ["log.dsjson", "log.jsonl"])
def test_a_decision_of_vowpal_wabbit(tmp_path, name):
    log = Log(vw(tmp_path, decision_line(), decision_line(_label_cost=0), name=name))
    kinds = {"User.age": "numbers", "User.city": "words", "Hour.0.of_day": "numbers"}
    assert log.feature_columns.kinds == kinds
    first, second = log
    made = first.decision
    assert (made.labels, first.hit, second.hit, first.id) == (["sports"], True, False, "e1")
    assert made.eligible == ["news", "sports", 2]
    assert made.propensity == pytest.approx(0.8)
    assert made.x == {"User.age": 0.5, "User.city": "Rome", "Hour.0.of_day": 13}
    batch = LogBatch.from_records(list(log), summarize(log).vocabulary)
    draw = batch.distributions[0]
    assert [draw.probability(frozenset([r])) for r in range(3)] == pytest.approx([0.05, 0.15, 0.8])
    np.testing.assert_allclose(batch.rule_propensity, 0.8)


def test_a_slate_of_vowpal_wabbit(tmp_path):
    log = Log(vw(tmp_path, slate_line(), slate_line(_label_cost=-1)))
    first, second = log
    assert (first.decision.labels, first.hit, second.hit) == ([1, 2], False, True)
    assert first.decision.propensity == pytest.approx(0.35)
    batch = LogBatch.from_records(list(log), summarize(log).vocabulary)
    np.testing.assert_allclose(batch.distributions[0].inclusion(), [0.3, 0.7, 0.5, 0.2, 0.3])
    np.testing.assert_allclose(batch.rule_propensity, 0.35)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (decision_line(_label_cost=-0.5), r"row 2 must be of cost -1 \(a hit\) or 0 \(a miss\), not -0.5"),
        (decision_line(pdrop=0.5), "row 2 must be without pdrop"),
        (decision_line(a=[9]), "row 2 must be dsjson of a decision or a slate"),
        (slate_line(c={"_multi": [{}], "_slots": [{}]}), "row 2 must be dsjson of a decision or a slate"),
    ],
)
def test_lines_of_vowpal_wabbit_that_cannot_be_used(tmp_path, line, message):
    path = vw(tmp_path, decision_line(), line)
    with pytest.raises(BadRow, match=message):
        list(Log(path))
    assert len(list(Log(path, skip_bad=True))) == 1


def test_vowpal_wabbit_answers_what_another_policy_would_have_done(tmp_path):
    """Three actions with chances .6, .3, .1 in an order by visitor; the right one is known here."""
    random = np.random.default_rng(0)
    lines, right = [], []
    for i in range(1500):
        order = random.permutation(3)
        shown = int(random.choice(3, p=[0.6, 0.3, 0.1]))
        y = int(random.choice(3, p=[0.5, 0.3, 0.2]))
        order = [order[shown], *(a for at, a in enumerate(order) if at != shown)]
        logged = [0.6, 0.3, 0.1]
        p = [logged[shown], *(logged[at] for at in range(3) if at != shown)]
        line = decision_line(
            a=[int(a) + 1 for a in order], p=p, _label_Action=int(order[0]) + 1, EventId=str(i),
            _label_cost=-1.0 if order[0] == y else 0.0,
            c={"s": {"z": float(random.normal())}, "_multi": [{}] * 3},
        )  # fmt: skip
        lines.append(line)
        right.append(y)
    log = Log(vw(tmp_path, *lines))
    policies = [Policy("0", fixed=[0]), Policy("0, 2", fixed=[0, 2])]
    answer = evaluate(log, policies, summarize(log), holdout=None)
    assert answer.warnings == ()
    for result, labels in zip(answer.results, ([0], [0, 2]), strict=True):
        best, truth = result.best, np.isin(right, labels).mean()
        assert best.low - best.width / 2 < truth < best.high + best.width / 2
        assert best.width < 0.2


# ---------------------------------------------------------------- Open Bandit Pipeline


def feedback(n=2000):
    random = np.random.default_rng(1)
    y = random.integers(4, size=n)
    pi = random.dirichlet(np.ones(4) * 3, n)
    action = np.array([random.choice(4, p=p) for p in pi])
    return {
        "n_rounds": n, "n_actions": 4, "context": np.eye(4)[y] + 0.1 * random.normal(size=(n, 4)),
        "action": action, "reward": (action == y).astype(int), "position": None,
        "pscore": pi[np.arange(n), action], "pi_b": pi[:, :, None], "expected_reward": np.eye(4)[y],
    }  # fmt: skip


@pytest.mark.parametrize("known", ["pi_b", "pscore"])
def test_bandit_feedback(known):
    data = feedback()
    if known == "pscore":
        data["pi_b"] = None
    log = Log(data)
    summary = summarize(log)
    assert (summary.n_labels, summary.n_features, summary.set_size) == (4, 4, 1)
    learner = sa.SetLogit(**summary.learner_params)
    train(log, learner, summary, passes=2, holdout=0.5)
    answer = evaluate(log, [Policy("model", learner=learner)], summary, holdout=0.5)
    assert answer.warnings == ()
    assert answer.results[0].best.high > 0.95
    best = evaluate(log, [Policy("0", fixed=[0])], summary, holdout=None).results[0].best
    assert best.low - best.width / 2 < 0.25 < best.high + best.width / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": None}, "bandit_feedback has no context, which Open Bandit Pipeline logs; it has "),
        ({"slate_id": [1]}, "slate_id of bandit_feedback must be left out"),
        (
            {"context": np.zeros((3, 4))},
            "action, reward and context of bandit_feedback must be of one length",
        ),
        ({"reward": np.full(2000, 0.5)}, "row 1 must be of reward 1"),
    ],
)
def test_bandit_feedback_that_cannot_be_used(change, message):
    with pytest.raises(InvalidInput, match=message):
        list(Log(feedback() | change))


# ---------------------------------------------------------------- CSV files


def test_another_separator_is_asked_for(tmp_path):
    path = write_log(tmp_path, "age,labels,hit\n1,books|music|garden,1\n2,toys|music|books,0\n")
    with pytest.raises(BadRow, match=r"row 1 must be a set such as a;b;c .*set the separator to '\|'"):
        list(Log(path))
    assert next(iter(Log(path, separator="|"))).decision.labels == ["books", "music", "garden"]
    assert next(iter(Log(path, separator=";"))).decision.labels == ["books|music|garden"]
    comma = write_log(tmp_path, 'age,labels,hit\n1,"books,music",1\n2,"toys,music",0\n')
    with pytest.raises(BadRow, match="set the separator to ','"):
        run("train", comma, "--output", tmp_path / "m.npz")
    assert "2 rows, 3 labels" in run("train", comma, "--output", tmp_path / "m.npz", "--separator", ",")
    with pytest.raises(InvalidInput, match="separator of superarm must be at least one character"):
        Log(path, separator="")


def test_tables_with_semicolons_or_tabs_between_columns(tmp_path):
    for mark, name in ((";", "log.csv"), ("\t", "log.tsv")):
        text = "age,labels,hit\n1,books|music,1\n".replace(",", mark)
        (one,) = Log(write_log(tmp_path, text, name), separator="|")
        assert (one.decision.labels, one.decision.x.tolist()) == (["books", "music"], [1.0])


def slates(tmp_path, n=600):
    """As pandas would write it: an index, an id, a constant, a word, a date."""
    data = table(n)
    frame = pd.DataFrame(
        {
            "customer_id": np.random.default_rng(3).permutation(n) + 10_000,
            **{name: data[name].round(3) for name in ("age", "income")},
            "shop": 7,
            "city": ["Rome", "Oslo"] * (n // 2),
            "empty": None,
            "labels": [";".join(s) for s in data["labels"]],
            "hit": np.array(data["hit"]).astype(int),
        }
    )
    frame.to_csv(tmp_path / "slates.csv")
    return tmp_path / "slates.csv"


def test_train_says_what_it_takes_and_what_it_leaves_out(tmp_path):
    told = run("train", slates(tmp_path), "--uniform", "--output", tmp_path / "m.npz")
    assert "features: age, income (numbers); city (words) (by the first 600 rows)\n" in told
    left = "column 1 (counts the rows); customer_id (an id); shop (always 7); empty (empty); labels (the set); hit"
    assert f"left out: {left} (the outcome)\n" in told
    assert "WARNING" not in told
    again = ("--output", tmp_path / "m.npz", "--force", "--json")
    told = json.loads(run("train", slates(tmp_path), "--uniform", *again))
    assert told["features"] == ["age", "income", "city"]
    assert told["left_out"]["customer_id"] == "an id"
    assert told["left_out"]["shop"] == "always 7"


def test_train_warns_when_features_say_nothing(tmp_path):
    random = np.random.default_rng(0)
    lines = [",".join([*(f"noise{i}" for i in range(30)), "labels", "hit"])]
    for _ in range(300):
        noise = [f"{value:.3f}" for value in random.normal(size=30)]
        shown = ";".join(random.permutation(TEAMS)[:2])
        lines.append(",".join([*noise, shown, str(int(random.random() < 0.5))]))
    told = run("train", write_log(tmp_path, "\n".join(lines) + "\n"), "--output", tmp_path / "m.npz")
    assert "WARNING: the model is no better than that" in told
    assert "cannot say" in told  # no hit rate that evaluate would refuse


def test_a_hit_rate_that_evaluate_would_refuse_is_not_printed(tmp_path):
    path = slates(tmp_path, 200)
    told = run("train", path, "--uniform", "--output", tmp_path / "m.npz")
    assert "cannot say" in told
    (reason,) = [line for line in told.splitlines() if line.startswith("hit rate: the log cannot answer: ")]
    told = run("evaluate", path, "--uniform", "--model", tmp_path / "m.npz")
    assert "WARNING: this log cannot answer for this policy; about" in told
    why, remedy = reason.removeprefix("hit rate: the log cannot answer: ").split("; ", 1)
    assert f"pi, pi-dr: {why}" in told
    assert f"this policy; {remedy}" in told
    assert "of uniform sets in as many rows" in told or "such rows to judge by would." in told
    again = ("--output", tmp_path / "m.npz", "--force", "--json")
    history = json.loads(run("train", path, "--uniform", *again))["history"]
    assert [(one["hit_rate"], one["problem"]) for one in history] == [(None, f"{why}; {remedy}")]


@pytest.mark.parametrize("word", ["ja", "Nein", "2"])
def test_answers_in_other_words_are_refused_with_a_way_to_map_them(word):
    rows = {"labels": ["a;b", "a;c", "b;c"], "x1": [1.0, 2.0, 0.5], "solved": ["Yes", "n", word]}
    columns = LogColumns(hit="solved")
    message = (
        r"^solved of the pandas frame, row 3 must be true or false \(1 or 0, yes or no, y or n; empty is no answer; "
        rf".* in pandas by frame\['solved'\].map\(.*\)\), got '{word}'$"
    )
    with pytest.raises(InvalidInput, match=message):
        list(Log(pd.DataFrame(rows), columns=columns))
    frame = pd.DataFrame(rows | {"solved": ["ja", "nein", "ja"]})
    frame["solved"] = frame["solved"].map({"ja": True, "nein": False})
    assert [record.hit for record in Log(frame, columns=columns)] == [True, False, True]


# ---------------------------------------------------------------- scores of somebody's own


@pytest.fixture
def scored(tmp_path):
    """A log with a column of scores: a model of somebody's own."""
    data = table(1200)
    s = np.stack([data["age"], data["income"], -data["age"], -data["income"]], axis=1)
    frame = pl.DataFrame(
        {
            **{name: data[name] for name in ("age", "income")},
            "labels": [";".join(one) for one in data["labels"]],
            "hit": data["hit"],
            "score": [json.dumps(row) for row in s.round(4).tolist()],
            "named": [json.dumps(dict(zip(TEAMS, row, strict=True))) for row in s.round(4).tolist()],
            **{f"s_{name}": s[:, i].round(4) for i, name in enumerate(TEAMS)},
        }
    )
    frame.write_csv(tmp_path / "scored.csv")
    return tmp_path / "scored.csv"


def in_order(scored):
    """The option that names the labels in the order of the scores."""
    scored.with_suffix(".txt").write_text("\n".join(TEAMS))
    return "--labels", scored.with_suffix(".txt")


def test_a_column_of_scores_on_the_command_line(scored):
    common = ("evaluate", scored, "--uniform", "--features-columns", "age,income", *in_order(scored))
    wide = ",".join(f"s_{name}" for name in TEAMS)
    told = json.loads(run(*common, "--scores", "score", "--scores", "named", "--scores", wide, "--json"))
    one, two, three = [v["estimates"] for v in told["results"]]
    assert one == two == three
    best = [e for e in one if not e["problem"]][-1]
    assert best["value"] > 0.9  # at random a half
    assert [v["set_size"] for v in told["results"]] == [2, 2, 2]
    told = run(*common, "--scores", "score", "--rule", "runner-up:explore=0.5")
    assert "score, m = 2, RunnerUp(explore=0.5" in told
    assert "read: " in told
    told = run(*common, "--scores", "score", "--set-size", "1,2", "--gamma", "0.1,0.5", "--grid")
    assert told.count("gamma = 0.5") == 2


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--scores", "none"), "none of the log, row 1 must be 4 finite scores"),
        (("--scores", "age"), "age of the log, row 1 must be 4 finite scores"),
        (("--probabilities", "score"), "probabilities of score must be at least 0"),
        (("--scores", "score", "--rule", "runner"), "explore of evaluate must be a rule, one of"),
        (("--scores", "score", "--rule", "runner-up:x"), "--rule of evaluate must be name:key=value"),
        (
            ("--scores", "score", "--rule", "runner-up", "--gamma", "0.1"),
            "--gamma of evaluate must be left out",
        ),
        (("--fixed", "books", "--rule", "uniform"), "rule of books must be left out for a fixed list"),
        (("--scores", "score", "--rule", "boltzmann"), "set_size of score must be 1"),
        (("--scores", "score", "--figure", "no/such/folder/f.svg"), "--figure of .* must be a file in"),
    ],
)
def test_scores_and_rules_that_are_refused(scored, extra, message):
    options = ("--uniform", "--features-columns", "age,income", *in_order(scored), *extra)
    with pytest.raises(InvalidInput, match=message):
        run("evaluate", scored, *options)


def test_scores_from_a_function():
    data = table(1500)
    log = Log(pd.DataFrame(data), uniform=True)
    summary = summarize(log)
    model = lambda X: np.stack([X[:, 0], X[:, 1], -X[:, 0], -X[:, 1]], axis=1)  # noqa: E731
    answer = evaluate(log, [Policy("own", scores=model, set_size=2)], summary, holdout=None)
    assert answer.results[0].best.value > 0.9
    with pytest.raises(InvalidInput, match="set_size of own must be given, or a rule with one"):
        Policy("own", scores=model)
    for wrong, message in (
        (lambda X: X, "scores of own must be finite, 4 for each row"),
        (lambda X: X @ np.ones(9), "scores of own must be a function of a matrix of features"),
    ):
        with pytest.raises(InvalidInput, match=message):
            evaluate(log, [Policy("own", scores=wrong, set_size=2)], summary, holdout=None)


# ---------------------------------------------------------------- the service's own export


def test_a_log_carries_its_format(tmp_path):
    learner = sa.SetLogit(n_labels=4, n_features=2, set_size=2)
    with Writer(tmp_path / "log.jsonl") as log:
        log.add(learner.decide([1.0, 2.0]), hit=True)
    row = json.loads((tmp_path / "log.jsonl").read_text())
    assert tuple(row) == COLUMNS
    assert row["format"] == LOG_FORMAT
    assert row["rule"]["name"] == "runner-up"
    (tmp_path / "later.jsonl").write_text(json.dumps(row | {"format": LOG_FORMAT + 1}) + "\n")
    with pytest.raises(InvalidInput, match=f"format of .*later.jsonl must be {LOG_FORMAT}, as this superarm"):
        Log(tmp_path / "later.jsonl")
    own = write_log(
        tmp_path, "age,format,rule,labels,hit\n1,banner,best,a;b,1\n2,film,best,b;c,0\n", "own.csv"
    )
    assert set(Log(own).feature_columns.left_out) == {"labels", "hit"}  # format and rule are somebody's own
    log = Log([row | {"rule": '{"name": "runner-up", "sums": [1]}'}])
    with pytest.raises(BadRow, match="rule of the log, row 1 must be as superarm wrote it"):
        evaluate(log, [Policy("f", fixed=[0])], summarize(log, labels=4), holdout=None)


# ---------------------------------------------------------------- files that are not what they seem


def test_files_that_end_in_one_sentence(tmp_path):
    latin = tmp_path / "latin.csv"
    latin.write_bytes("age,labels,hit\n1,caf\xe9;bar,1\n".encode("latin-1"))
    nul = tmp_path / "nul.csv"
    nul.write_bytes(b"age,labels,hit\n1,a;b\x00,1\n" * 2)
    (tmp_path / "folder.csv").mkdir()
    for path, message in (
        (latin, r"latin.csv must be text in UTF-8, got the byte 0xe9: save it as UTF-8"),
        (tmp_path / "folder.csv", r"folder.csv is a folder, not a file"),
        (tmp_path / "none.csv", r"no such file: .*none.csv"),
        (
            write_log(tmp_path, "a,a,labels,hit\n1,2,x;y,1\n", "twice.csv"),
            "columns of .* must be of different",
        ),
        (write_log(tmp_path, "", "empty.csv"), "empty.csv has no rows"),
    ):
        for command in (("train", path, "--output", tmp_path / "m.npz"), ("evaluate", path, "--fixed", "a")):
            with pytest.raises(InvalidInput, match=message):
                run(*command)
    good = slates(tmp_path)
    with pytest.raises(InvalidInput, match="--output of superarm train must be a file in an existing folder"):
        run("train", good, "--output", tmp_path / "none" / "m.npz")


def test_what_hit_may_be():
    made = sa.Decision.given([1.0], [0, 1])
    from superarm.logs import LoggedDecision

    assert LoggedDecision.from_decision(made, hit=np.int64(1)).hit is True
    assert LoggedDecision.from_decision(made, hit=np.bool_(False)).hit is False
    with pytest.raises(InvalidInput, match="hit of LoggedDecision must be True or False, got 'no'"):
        LoggedDecision.from_decision(made, hit="no")
