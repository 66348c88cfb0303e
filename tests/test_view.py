"""Objects in a notebook: short reprs, escaped HTML, charts; learners compared."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import superarm as sa
from superarm import _progress as progress_module
from superarm._progress import progress_bar, with_progress
from superarm.errors import InvalidInput
from superarm.logs import Log, Policy, Writer, evaluate, summarize, train
from superarm.native.answered_rounds import AnsweredRounds

EVIL = "<img src=x onerror=alert(1)>"
NAMES = [EVIL, "b&c", "d", "e", "f", "g", "h"]


def shown(one: object) -> str:
    """Its HTML: well-formed, without a script, with nothing from elsewhere, and names as text."""
    html = one._repr_html_()  # type: ignore[attr-defined]
    tree = ET.fromstring(f"<body>{html}</body>")
    assert not {"script", "img", "link", "iframe"} & {node.tag for node in tree.iter()}
    assert "http" not in html
    return re.sub(r"\s+", " ", "".join(tree.itertext()))


@pytest.fixture(scope="module")
def learner():
    made = sa.SetLogit(labels=NAMES, set_size=2, explore=0.2, seed=1)
    random = np.random.default_rng(0)
    y = random.integers(0, 7, 400)
    made.run(np.eye(7)[y] + 0.1 * random.normal(size=(400, 7)), y)
    return made


def test_a_learner_says_what_it_was_made_with_and_no_more(learner):
    assert repr(sa.SetLogit(n_labels=10, n_features=64, set_size=3)) == (
        "SetLogit(n_labels=10, n_features=64, set_size=3)"
    )
    assert repr(sa.MCDBF(labels=["a", "b", "c"], gamma=0.3)) == "MCDBF(labels=['a', 'b', 'c'], gamma=0.3)"
    assert repr(learner) == (
        f"SetLogit(labels=[{EVIL!r}, 'b&c', 'd', … 'h'], n_features=7, set_size=2, seed=1, explore=0.2)"
    )
    rule = sa.SetLogit(n_labels=4, explore=sa.explore.Uniform())
    assert "explore=Uniform(" in repr(rule)


def test_a_reduced_repr_still_makes_the_learner():
    made = sa.SetLogit(n_labels=5, n_features=3, set_size=2, seed=7, curves=0, step=0.5)
    again = eval(repr(made), {"SetLogit": sa.SetLogit})
    assert again.params == made.params


def test_a_learner_in_a_notebook(learner):
    text = shown(learner)
    assert f"2 of 7 labels: {EVIL}, b&c, d, e, f, g, … (7)" in text
    assert "7 dense features" in text
    assert "400 decided, 400 answered" in text
    assert "explore0.2" in text
    assert "the first one will tell" in shown(sa.SetLogit(n_labels=3))
    named = sa.SetLogit(labels=["x", "y", "z"])
    named.decide({"age": 3, "city": "Rome"})
    assert "with names: age (numbers), and more names as they come" in shown(named)
    words = sa.SetLogit(labels=["x", "y", "z"])
    words.decide({"city": "Rome"})
    assert "all of them words" in shown(words)


def test_how_many_rounds_were_answered():
    answered, random = AnsweredRounds(), np.random.default_rng(0)
    rounds = set()
    for round_ in random.permutation(200)[:120]:
        answered.add(int(round_))
        rounds.add(round_)
        assert answered.count == len(rounds)


def test_decisions_in_a_notebook(learner):
    decisions = learner.decide_many(np.eye(7)[[0, 1, 2] * 5])
    text = shown(decisions[0])
    assert "runner-up, explore = 0.2" in text
    assert f"{decisions[0].propensity:.4g}" in text
    assert str(decisions[0].labels[0]) in text
    more = learner.decide_many(np.eye(7)[[0, 1, 2] * 20])
    explored = next(one for one in more if set(one.labels) != set(one.top))
    assert "top set" in shown(explored)
    given = sa.Decision.given([1.0], labels=[EVIL], eligible=[EVIL, "b"])
    assert f"eligible{EVIL}, b" in shown(given)
    assert "propensity" not in shown(given)


def test_a_trace_shows_and_draws_itself():
    trace = sa.simulate(sa.Perceptron(n_labels=10, n_features=64, set_size=2), "digits", 2_000)
    assert repr(trace) == (
        f"Trace(perceptron on digits, m = 2: error {trace.error_rate:.4f}, miss {trace.miss_rate:.4f}, "
        f"shown miss {trace.shown_miss_rate:.4f}; 2,000 rounds, scaling unit)"
    )
    assert f"{trace.miss_rate:.4f}" in shown(trace)
    for y in ("error_rate", "shown_miss_rate"):
        values = _data(trace.plot(y))
        assert values[-1]["mean"] == pytest.approx(trace.rates[y], rel=1e-4)
        assert {row["series"] for row in values} == {"perceptron"}
    with pytest.raises(InvalidInput, match=r"y of plot must be one of .*did you mean 'error_rate'"):
        trace.plot("error_rates")


# ---------------------------------------------------------------- comparisons


def test_learners_are_compared_on_the_same_rows():
    own = sa.Perceptron(n_labels=10, set_size=3, seed=4)
    found = sa.compare([own, "mc-dbf:gamma=0.3", "banditron"], "digits", rounds=500, set_size=2, seeds=2)
    assert own.round == 0  # it stays as it is
    frame = found.to_frame()
    assert frame["learner"].to_list() == ["perceptron"] * 2 + ["mc-dbf:gamma=0.3"] * 2 + ["banditron"] * 2
    assert frame["set_size"].to_list() == [3, 3, 2, 2, 1, 1]
    for i in range(2):
        alone = sa.Perceptron(n_labels=10, n_features=64, set_size=3, seed=4 + i, scaling="standard")
        assert frame["error_rate"][i] == sa.simulate(alone, "digits", 500, seed=i).error_rate
    table = found.table()
    assert table["error_rate"][0] == pytest.approx(frame["error_rate"][:2].mean())
    lines = repr(found).splitlines()
    assert lines[0].startswith("digits: 500 rounds, 10 labels, 2 seed(s), mean ±")
    assert " ".join(line.split()[0] for line in lines[1:]) == "learner perceptron mc-dbf:gamma=0.3 banditron"
    assert "banditron" in shown(found)
    series = {row["series"] for row in _data(found.plot())}
    assert series == {"perceptron", "mc-dbf:gamma=0.3", "banditron"}


def test_all_learners_of_a_comparison_scale_rows_alike():
    """Unless one says otherwise; and the table says what each had."""
    made = [sa.Perceptron(n_labels=10), "softmax", "set-logit", "mc-dbf:scaling=unit"]
    for scaling, wanted in (
        ("standard", ["standard", "standard", "standard", "unit"]),
        ("unit", ["unit"] * 4),
        (None, ["unit", "unit", "standard", "unit"]),
    ):
        found = sa.compare(made, "digits", rounds=50, scaling=scaling)
        assert found.table()["scaling"].to_list() == found.to_frame()["scaling"].to_list() == wanted
        assert [line.split()[2] for line in repr(found).splitlines()[1:]] == ["scaling", *wanted]
    with pytest.raises(InvalidInput, match="scaling of Perceptron must be one of standard, unit, or None"):
        sa.compare(made, "digits", rounds=50, scaling="none")


def test_names_tell_learners_apart():
    sizes = [sa.Perceptron(n_labels=10, set_size=m) for m in (1, 2)]
    assert list(sa.compare(sizes, "digits", rounds=50).runs) == ["perceptron, m = 1", "perceptron, m = 2"]
    spelt = sa.compare([sa.MCDBF(n_labels=10, set_size=2, gamma=0.5)], "digits", rounds=50)
    assert list(spelt.runs) == ["mc-dbf:gamma=0.5"]
    with pytest.raises(InvalidInput, match="learners of compare must be all different"):
        sa.compare(["perceptron", "perceptron"], "digits", rounds=50)
    with pytest.raises(InvalidInput, match="learners and seeds of compare must be at least one"):
        sa.compare([], "digits")


def test_many_learners_are_drawn_in_several_charts():
    many = [f"mc-dbf:gamma=0.{i}" for i in range(1, 10)]
    found = sa.compare(many, "digits", rounds=100)
    assert len(found.plot().to_dict()["vconcat"]) == 2


# ---------------------------------------------------------------- logs


@pytest.fixture(scope="module")
def log(learner, tmp_path_factory):
    path = tmp_path_factory.mktemp("view") / "evil & log.jsonl"
    random = np.random.default_rng(3)
    rule = sa.explore.Uniform(set_size=2, seed=0, labels=NAMES)
    with Writer(path) as writer:
        for i in range(4_000):
            y = int(random.integers(7))
            made = rule.decide(scores=np.zeros(7), x=np.eye(7)[y] + 0.1 * random.normal(size=7))
            writer.add(made, hit=None if i % 100 == 0 else NAMES[y] in made.labels)
    return Log(path)


def test_a_log_and_its_results(log):
    assert repr(log) == "Log(evil & log.jsonl)"
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    ticks = []
    train(log, learner, summary, progress=ticks.append)
    assert sum(ticks) == 4_000
    assert "trained" in shown(learner)
    policies = [Policy(EVIL, learner=learner), Policy("small", learner=learner, set_size=1)]
    answer = evaluate(log, policies, summary, holdout=None, progress=ticks.append)
    assert sum(ticks) == 8_000
    best = answer.results[0].best
    assert best is not None
    assert f"{best.value:.4f}" in repr(answer.results[0])
    assert EVIL in shown(answer)
    assert f"{best.name} (best)" in shown(answer.results[0])
    assert repr(answer).count("PolicyResult(") == 2
    assert {row["policy"] for row in _data(answer.plot()) if "policy" in row} == {EVIL, "small"}


def _data(chart) -> list[dict]:
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


# ---------------------------------------------------------------- progress


def test_a_notebook_without_ipywidgets_gets_lines(monkeypatch, capsys):
    """A Jupyter kernel sets FORCE_COLOR, which elsewhere asks for a live bar. (with it: tests/docs)"""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress_module, "find_spec", {}.get)
    monkeypatch.setattr(progress_module, "LOG_SECONDS", -1.0)
    fake = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    monkeypatch.setitem(progress_module.sys.modules, "IPython", fake)
    with progress_bar(200, "rows") as tick:
        tick(50)
    assert list(with_progress("ab", True, None, "letters")) == ["a", "b"]
    amounts = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert amounts == ["50 of 200 rows", "1 letters", "2 letters"]


def test_no_bar_where_nobody_asked(capsys):
    assert list(with_progress([1, 2], None, 2, "rows")) == [1, 2]
    said = capsys.readouterr()
    assert said.err == said.out == ""


@pytest.mark.parametrize("kind", ["trace", "comparison", "evaluation"])
def test_a_saved_page_needs_no_network(kind: str, tmp_path: Path) -> None:
    """Also after the chart was changed: all scripts are in the file."""
    if kind == "trace":
        learner = sa.SetLogit(n_labels=10, n_features=64, set_size=3)
        chart = sa.simulate(learner, "digits", rounds=500).plot()
    elif kind == "comparison":
        chart = sa.compare(["set-logit", "softmax"], "digits", rounds=500).plot()
    else:
        row = {"x": [1.0], "propensity": 1 / 3}
        log = Log([row | {"labels": [i % 3, (i + 1) % 3], "hit": i % 2 == 0} for i in range(400)])
        chart = evaluate(log, [Policy("first two", fixed=[0, 1])], summarize(log), holdout=None).plot()
    expected = {
        "trace": "set-logit on digits, m = 3: error rate 0.",
        "comparison": "2 learners on digits",
        "evaluation": "Hit rate of first two, estimated from the log",
    }
    assert expected[kind] in str(chart.to_dict()["title"])
    chart.properties(title="changed").save(tmp_path / "chart.html")
    page = (tmp_path / "chart.html").read_text()
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
    assert "vega" in page
    assert "cdn" not in re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.S)
    chart.save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_reprs_tell_what_it_is() -> None:
    assert repr(sa.streams.Synthetic()) == "Synthetic(synsep: new rows of 400 features, 9 labels, noise 0)"
    assert (
        repr(sa.streams.Arrays(np.zeros((5, 2)), list("ababa")))
        == "Arrays(arrays: 5 rows of 2 features, 2 labels)"
    )
    assert repr(sa.SetLogit(labels=["a", "b"]).vocabulary) == "LabelVocabulary(['a', 'b'])"
    assert repr(sa.SetLogit(n_labels=9).vocabulary) == "LabelVocabulary(9)"
    assert "… 'l': 12" in repr(sa.SetLogit(labels=list("abcdefghijkl")).vocabulary)
    assert repr(sa.explore.RunnerUp(uniform=0.1)) == "RunnerUp(explore='balanced', uniform=0.1, forget=0.0)"
    assert repr(Log([{"labels": [1, 2], "hit": True, "x": [1.0]}])) == "Log(the table)"


USED_OF_LEARNERS = {
    *("decide", "update", "decide_many", "update_many", "run", "cursor", "advance", "scores", "rank"),
    *("predict", "predict_set", "save", "with_params", "with_new_rule", "resume_from_snapshot"),
    *("add_labels", "use_columns"),
    *("name", "feedback", "params", "nondefault_params", "effective_scaling", "labels", "n_labels"),
    *("n_features", "columns", "column_warnings", "metadata", "round", "answered", "set_size", "id"),
    *("rule", "current_rule", "coverage", "coverage_at"),
}
USED_OF_SETLOGIT = {"predict_proba", "to_onnx", "n_random_features"}
USED_OF_RULES = {
    *("name", "params", "to_dict", "decide", "decide_many", "distribution", "update", "round", "id")
}


def shown_by_tab(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_tab_shows_what_people_use() -> None:
    setlogit = sa.SetLogit(n_labels=4, n_features=2, set_size=2)
    assert shown_by_tab(setlogit) == USED_OF_LEARNERS | USED_OF_SETLOGIT | setlogit.params.keys()
    perceptron = sa.Perceptron(n_labels=4, n_features=2)
    assert shown_by_tab(perceptron) == USED_OF_LEARNERS | perceptron.params.keys()
    common = {"set_size", "seed", "labels"}
    dilute = sa.explore.Dilute(gamma=0.1)
    assert shown_by_tab(dilute) == USED_OF_RULES | common | dilute.params.keys()
    cover = sa.explore.Cover(coverage=0.9)
    assert shown_by_tab(cover) == USED_OF_RULES | common | cover.params.keys() | {"observed_coverage"}
