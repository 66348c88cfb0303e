"""The report: right numbers, whole files, and a page that works in a real browser."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import polars
import pytest
from browser import visit
from lab_kit import small_spec, write_spec
from msgspec import structs
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.errors import InvalidInput
from superarm.experiments import DEMO_SPEC, Store, paper_specs, read_spec, run
from superarm.experiments.runs import RunFailure
from superarm.experiments.spec import Figure
from superarm.report import write_report
from superarm.report.chart import DASHES, INK, PALETTE, Axis, LineStyle, line_chart, log_ticks
from superarm.report.figures import figure_charts
from superarm.report.findings import figure_findings
from superarm.report.stats import differences, half_width, summary, with_interval, with_series
from superarm.report.theory_charts import second_moment_charts

GRID = """
title = "A report's <grid> & more"
rounds = 3000
seeds = 3
set_sizes = [2, 4, 7]
gammas = [0.05, 0.2, 0.8]
data = ["digits", "synsep"]
reference = "SOBA"
learners = [
  { use = "mc-dbf", name = "MC-DBF" },
  { use = "soba-diag", name = "SOBA" },
  { use = "perceptron", name = "Perceptron", set_sizes = [1] },
]
[[figures]]
kind = "gamma"
title = "Over gamma"
paper = "The paper says so."
[[figures]]
kind = "rounds"
title = "Over rounds"
set_sizes = [1, 4]
log = ["x", "y"]
[[figures]]
kind = "set-size"
title = "Over m"
learners = ["MC-DBF"]
one_chart = true
finding = "monotone"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    store = Store(folder / "store")
    run(read_spec(write_spec(folder, GRID)), store)
    return store


@pytest.fixture(scope="module")
def page(store):
    return write_report(store.folder)


def frame(columns, rows, **constants):
    table = polars.DataFrame(rows, schema=columns.split(), orient="row", infer_schema_length=None)
    return table.with_columns(**{name: polars.lit(value) for name, value in constants.items()})


# ---------------------------------------------------------------- numbers


def test_intervals_are_students():
    from scipy import stats

    values = np.array([0.1, 0.4, 0.25, 0.3])
    wanted = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    table = with_interval(polars.DataFrame({"g": ["a"] * 4, "error_rate": values}), ["g"], "error_rate")
    assert table["low"].item() == pytest.approx(wanted[0])
    assert table["high"].item() == pytest.approx(wanted[1])
    assert half_width(None, 1) is None
    wild = with_interval(polars.DataFrame({"g": ["a"] * 2, "error_rate": [0.0, 1.0]}), ["g"], "error_rate")
    assert (wild["low"].item(), wild["high"].item()) == (0.0, 1.0)  # a rate has no other values


def test_differences_are_paired_by_seed():
    runs = polars.DataFrame(
        {
            "data": ["d"] * 8,
            "learner": ["a"] * 2 + ["b"] * 6,
            "set_size": [1, 1, 2, 2, 2, 3, 3, 3],
            "gamma": [None] * 2 + [0.1] * 6,
            "seed": [0, 1, 1, 0, 2, 0, 1, 2],
            "error_rate": [0.2, 0.4, 0.5, 0.3, 0.9, 0.2, 0.4, 0.9],
        }
    )
    table, omitted = differences(runs, "a")
    assert omitted == {}
    assert table["set_size"].to_list() == [2, 3]
    assert table["difference"].to_list() == pytest.approx([0.1, 0.0])  # seed by seed, not by position
    assert table["pairs"].to_list() == [2, 2]
    assert table["half_interval"].to_list() == pytest.approx([0.0, 0.0], abs=1e-12)


def test_what_cannot_be_compared_is_told_with_the_reason():
    rows = [("d", "a", 1, 0.1, 0), ("d", "a", 1, 0.2, 0), ("d", "b", 1, 0.3, 0), ("d", "b", 1, 0.2, 0)]
    rows += [("e", "b", 1, None, 0), ("f", "a", 1, None, 0), ("f", "b", 1, None, 1)]
    runs = frame("data learner set_size gamma seed", rows, error_rate=0.5)
    table, omitted = differences(runs, "a")
    assert table.select("data", "gamma").rows() == [("d", 0.2)]
    assert omitted == {
        "d, b, m = 1, γ = 0.3": "a has several m or γ, none of them the same",
        "e, b, m = 1": "no run of a",
        "f, b, m = 1": "no seed in common with a",
    }
    sentences = figure_findings(Figure("rounds", finding="gap"), runs.with_columns(rounds=10), "a")
    assert any("1 cannot be compared with a" in sentence for sentence in sentences)


def test_what_cannot_be_compared_stands_below_the_table(page):
    note = "Not compared: digits, Perceptron, m = 1: SOBA has several m or γ, none of them the same."
    assert note in page.read_text(encoding="utf-8")
    assert note in (page.parent / "tables" / "grid-differences.md").read_text(encoding="utf-8")


def test_summary_and_series(store):
    runs, _ = store.frames("grid")
    table = summary(runs)
    one = table.filter(data="digits", learner="Perceptron")
    own = runs.filter(data="digits", learner="Perceptron")
    assert one["error_rate"].item() == pytest.approx(own["error_rate"].mean())
    assert one["runs"].item() == 3
    assert one["rounds_per_second"].item() > 0
    assert len(table) == 2 * (9 + 3 + 1)
    names = set(with_series(runs)["series"])
    assert {"MC-DBF, m = 4, γ = 0.2", "SOBA, γ = 0.05", "Perceptron"} <= names
    assert "digits, MC-DBF, γ = 0.2" in set(with_series(runs, axis="set_size", one_chart=True)["series"])


# ---------------------------------------------------------------- files


@pytest.mark.smoke
def test_every_figure_and_table_is_a_file(page):
    folder = page.parent
    figures = {p.stem for p in (folder / "figures").iterdir()}
    assert figures == {"grid-1-digits", "grid-1-synsep", "grid-2-digits", "grid-2-synsep", "grid-3"}
    for name in figures:
        svg = (folder / "figures" / f"{name}.svg").read_text()
        ET.fromstring(svg)
        assert "error rate (share of rounds)" in svg
        assert "MC-DBF" in svg
        assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    tables = {p.name for p in (folder / "tables").iterdir()}
    kinds = ("grid-best-gammas", "grid-differences", "grid-rates")
    assert tables == {f"{name}.{suffix}" for name in kinds for suffix in ("csv", "md")}
    best = (folder / "tables" / "grid-best-gammas.md").read_text()
    assert "| data | SOBA | paper: SOBA | MC-DBF, m = 2 | paper: low m |" in best
    rates = polars.read_csv(folder / "tables" / "grid-rates.csv")
    assert {"error_rate", "error_rate_half_interval", "shown_miss_rate"} <= set(rates.columns)


def test_the_table_names_the_best_gammas(store, page):
    runs, _ = store.frames("grid")
    table = polars.read_csv(page.parent / "tables" / "grid-best-gammas.csv")
    means = runs.filter(data="digits", learner="MC-DBF", set_size=4)
    means = means.group_by("gamma").agg(polars.col("error_rate").mean()).sort("error_rate")
    assert table.filter(data="digits")["MC-DBF, m = 4"].item() == means["gamma"][0]


def test_the_page_is_alone_and_says_everything(page):
    text = page.read_text()
    assert not re.search(r"""(src|href)=["'](https?:)?//""", text)
    assert "A report&#x27;s &lt;grid&gt; &amp; more" in text
    assert "The paper says so." in text
    for part in (
        "What came out",
        "digits: of 3 values of γ",
        "MC-DBF, γ = 0.05",
        "numpy: ",
        "cpu: ",
        "seeds = 3",
    ):
        assert part in text, part


def test_failures_and_gaps_are_told(tmp_path):
    store = Store(tmp_path / "s")
    spec = read_spec(small_spec(tmp_path))
    run(spec, store)
    keys = sorted(p for p in (store.folder / "runs").iterdir())
    cell = next(one for one in store.experiment("grid").runs if one.key == keys[0].stem)
    for path in keys[:2]:
        path.unlink()
    store.put(RunFailure(cell, "RuntimeError: no"))
    text = write_report(store.folder, tmp_path / "out", files=False).read_text()
    assert "1 failed: RuntimeError: no" in text
    assert "1 have not run yet" in text
    assert not (tmp_path / "out" / "figures").exists()


def test_the_command_and_what_it_refuses(store, tmp_path):
    result = CliRunner().invoke(app, ["report", str(store.folder), "--output", str(tmp_path)])
    assert result.exit_code == 0
    assert result.stdout.strip() == str(tmp_path / "index.html")
    with pytest.raises(InvalidInput, match=r"DIR of superarm report must be a directory with results"):
        CliRunner().invoke(app, ["report", str(tmp_path)], catch_exceptions=False)


def test_an_experiment_without_results_has_a_page(tmp_path):
    store = Store(tmp_path / "s")
    run(read_spec(small_spec(tmp_path)), store)
    for path in (store.folder / "runs").iterdir():
        path.unlink()
    assert "15 have not run yet" in write_report(store.folder, files=False).read_text()


def test_the_demo_spec_is_whole():
    spec = read_spec(DEMO_SPEC)
    names = {one.name for one in spec.learners}
    assert all(set(figure.learners) <= names for figure in spec.figures)
    assert len(spec.runs()) == 14 * 2 * 5


def test_theory_figures(tmp_path):
    text = """
rounds = 200
seeds = 2
set_sizes = [2]
gammas = [0.1, 0.2]
data = ["synsep"]
learners = [
  { use = "mc-dbf", name = "MC-DBF" },
  { use = "mc-dbf:gate=true", name = "gated" },
  { use = "perceptron", name = "Perceptron" },
]
[[figures]]
kind = "bound"
y = "miss_rate"
finding = "bound"
[[figures]]
kind = "second-moment"
"""
    store = Store(tmp_path / "s")
    run(read_spec(write_spec(tmp_path, text)), store)
    page = write_report(store.folder, files=False).read_text()
    bound, moments = (charts_of(store, i) for i in (0, 1))
    assert [chart.name for chart in (*bound, *moments)] == ["grid-0-synsep", "grid-1-gamma", "grid-1-k"]
    series = {point["series"] for point in points(bound[0])}
    gammas = ("m = 2, γ = 0.1", "m = 2, γ = 0.2")
    assert series == {
        *(f"{name}, {gamma}" for name in ("MC-DBF", "gated", "bound") for gamma in gammas),
        *("Perceptron, m = 2", "all rounds are misses"),
    }
    assert "MC-DBF with m = 2, γ = 0.1 has" in page
    assert "MC-DBF with m = 2, γ = 0.2 has" in page
    assert "the bound is at least" in page
    assert "Perceptron with m = 2" not in page  # Theorem 6 is about neither
    assert "gated with m = 2" not in page


@pytest.mark.parametrize(
    ("misses", "words"),
    [
        (0.0, "has 0 misses in 1,000,000 rounds; the bound is at least 536,451, and there is no miss"),
        (0.4, "has 0.4 misses in 1,000,000 rounds; the bound is at least 536,451, 1,341,128 times as many"),
        (500_000.0, "1.07 times as many"),
        (536_000.0, "1.00 times as many"),
        (900_000.0, "536,451, fewer than the misses: it is broken, unless that of these data is higher"),
    ],
)
def test_the_bound_in_words(misses, words):
    columns = "learner learner_spec params set_size gamma k rounds miss_rate seed"
    rows = [
        ("a", "mc-dbf", "{}", 2, 0.1, 9, 10**6, misses / 10**6, 0),
        ("b", "mc-dbf", '{"estimate":"set"}', 2, 0.1, 9, 10**6, 0.1, 0),
        ("c", "soba-diag", "{}", 1, 0.1, 9, 10**6, 0.1, 0),
    ]
    (sentence,) = figure_findings(Figure("bound"), frame(columns, rows, data="d"), None)
    assert sentence.startswith("d: a with m = 2, γ = 0.1 has ")
    assert words in sentence


def test_the_bound_says_nothing_about_single_labels():
    columns = "learner learner_spec params set_size gamma k rounds miss_rate seed"
    rows = [("a", "mc-dbf", "{}", 1, 0.1, 9, 1000, 0.2, 0)]
    (sentence,) = figure_findings(Figure("bound"), frame(columns, rows, data="d"), None)
    assert sentence.endswith("the bound is at least 1,100, more than there are rounds, and so says nothing.")


# ---------------------------------------------------------------- findings


def runs_of_one_gamma(store):
    runs, _ = store.frames("grid")
    return runs.filter((polars.col("gamma") == 0.2) | polars.col("gamma").is_null())


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        ("final", "error after 3,000 rounds, least first: Perceptron: 0."),
        ("gap", "error minus that of SOBA after 3,000 rounds: MC-DBF, m = 2: "),
        ("ratio", "SOBA has error"),
        ("monotone", "m = 7"),
    ],
)
def test_findings_in_words(store, finding, words):
    runs = runs_of_one_gamma(store)
    sentences = figure_findings(Figure("rounds", finding=finding), runs, "SOBA")
    assert sentences[0].startswith("digits: ")
    assert words in sentences[0]


@pytest.mark.parametrize(
    ("kind", "finding"),
    [("rounds", "final"), ("gamma", "best-gamma"), ("set-size", "monotone"), ("bound", "bound")],
)
def test_every_kind_of_figure_says_what_came_out(store, kind, finding):
    runs, _ = store.frames("grid")
    default = figure_findings(Figure(kind), runs, None)
    assert {sentence.partition(":")[0] for sentence in default} == {"digits", "synsep"}
    assert default == figure_findings(Figure(kind, finding=finding), runs, None)
    assert figure_findings(Figure("second-moment"), runs, None) == []


def test_second_moments_are_of_the_sizes_that_the_figure_names():
    over_gamma, over_k = second_moment_charts("moments", (3, 8))
    assert {point["series"].partition(", ")[2] for point in points(over_gamma)} == {"m = 3", "m = 8"}
    assert {point["x"] for point in points(over_k) if point["series"] == "set, m = 8"} >= {10, 15, 200}
    assert min(point["x"] for point in points(over_k) if point["series"] == "set, m = 8") == 10
    with pytest.raises(ValueError, match="set_sizes must be from 1 to 9 with kind 'second-moment'"):
        Figure("second-moment", set_sizes=(2, 10))


@pytest.mark.parametrize("name", [*paper_specs(), "demo"])
def test_every_figure_of_the_shipped_specs_has_a_finding(store, name):
    """Only the exact curves of theory have nothing that came out."""
    runs = runs_of_one_gamma(store)
    spec = read_spec(DEMO_SPEC) if name == "demo" else paper_specs()[name]
    for figure in spec.figures:
        any_runs = structs.replace(figure, learners=(), set_sizes=())
        reference = spec.reference and "SOBA"
        assert bool(figure_findings(any_runs, runs, reference)) == (figure.kind != "second-moment")


def test_the_best_gammas_in_words():
    rows = [("a", 2, g, e) for g, e in ((0.1, 0.3), (0.2, 0.1), (0.2, 0.3), (0.4, 0.2), (0.4, 0.5))]
    rows += [("a", 4, 0.1, 0.004), ("a", 4, 0.4, 0.1), ("b", 1, 0.4, 0.25), ("c", 3, None, 0.05)]
    rows = [(*row, seed) for row, seed in zip(rows, [0, 0, 1, 0, 1, 0, 0, 0, 0], strict=True)]
    runs = frame("learner set_size gamma error_rate seed", rows, data="d")
    assert figure_findings(Figure("gamma"), runs, None) == [
        "d: of 3 values of γ from 0.1 to 0.4 the best is 0.2 for a with m = 2 (error 0.200; "
        "no difference beyond the 95 % interval from 0.4); "
        "0.1 for a with m = 4 (error 0.004); 0.4 for b (error 0.250).",
        "d: a best γ at an end of the range that was tried may lie beyond it.",
        "d: without a γ, c with m = 3 has error 0.050.",
    ]
    inner = runs.filter(~((polars.col("set_size") == 4) | (polars.col("learner") == "b")))
    assert not any("beyond it" in sentence for sentence in figure_findings(Figure("gamma"), inner, None))


@pytest.mark.parametrize(("error", "end"), [(0.208, "all gaps are"), (0.22, "not all gaps are")])
def test_a_gap_that_has_closed_is_told_from_one_that_has_not(error, end):
    rows = [("a", 2, 0, error), ("a", 2, 1, error + 0.1), ("twin", 2, 0, 0.2), ("twin", 2, 1, 0.3)]
    runs = frame("learner set_size seed error_rate", rows, data="d", gamma=None, rounds=1000)
    (sentence,) = figure_findings(Figure("rounds", finding="gap"), runs, "twin")
    assert sentence.startswith("d: error minus that of twin after 1,000 rounds: a, m = 2: +0.0")
    assert sentence.endswith(f"; {end} below 0.01.")
    assert figure_findings(Figure("rounds", finding="gap"), runs, None) == []


@pytest.mark.parametrize("finding", ["best-gamma", "final", "gap", "monotone", "ratio"])
def test_findings_are_about_what_the_figure_shows(store, finding):
    """The numbers of a figure of shown misses are shown misses, whatever the sentence."""

    def sentences(y, frame):
        return figure_findings(Figure("rounds", y=y, finding=finding), frame, "SOBA")

    runs = runs_of_one_gamma(store)
    swapped = runs.rename({"error_rate": "a", "shown_miss_rate": "error_rate"}).rename(
        {"a": "shown_miss_rate"}
    )
    shown, errors = sentences("shown_miss_rate", runs), sentences("error_rate", swapped)
    assert shown != sentences("error_rate", runs)
    assert [one.replace("miss rate of the shown set", "error") for one in shown] == errors
    assert all("miss rate of the shown set" in one for one in shown)


def runs_of(errors, noise):
    """Runs of three seeds whose errors differ by ``noise``, not in the same way for each m."""
    rows = [
        (learner, m, seed, error + noise * ((seed * m) % 3))
        for learner, by_size in errors.items()
        for m, error in enumerate(by_size, 1)
        for seed in range(3)
    ]
    return frame("learner set_size seed error_rate", rows, data="d", gamma=None, rounds=100)


def test_a_rise_and_a_fall_with_m_are_told_apart_for_each_learner():
    runs = runs_of({"a": (0.125, 0.25, 0.375), "b": (0.125, 0.5, 0.25), "c": (0.375, 0.25, 0.125)}, 0.0)
    assert figure_findings(Figure("set-size", finding="monotone"), runs, None) == [
        "d: the error of a grows with every step of m: from 0.125 with m = 1 to 0.375 with m = 3, +0.250 ± 0.",
        "d: the error of b grows at m = 2, falls at m = 3: from 0.125 with m = 1 to 0.250 with m = 3, +0.125 ± 0.",
        "d: the error of c falls with every step of m: from 0.375 with m = 1 to 0.125 with m = 3, -0.250 ± 0.",
    ]


def test_noise_is_no_finding():
    runs = runs_of({"a": (0.014, 0.0145, 0.015)}, 0.002)
    (sentence,) = figure_findings(Figure("set-size", finding="monotone"), runs, None)
    assert sentence.startswith(
        "d: the error of a has no difference beyond the 95 % interval at any step of m: "
    )
    runs = runs_of({"a": (0.1, 0.101), "b": (0.1, 0.3)}, 0.01)
    first, second = figure_findings(Figure("rounds", finding="final"), runs, None)
    assert "least first: " in first
    assert second.startswith("d: error: no difference beyond the 95 % interval between ")
    assert "b, m = 2" not in second
    close = runs_of({"a": (0.209,), "twin": (0.2,)}, 0.0).with_columns(
        error_rate=polars.col("error_rate")
        + polars.when(polars.col("learner") == "a").then("seed").otherwise(0) * 0.004
    )
    (sentence,) = figure_findings(Figure("rounds", finding="gap"), close, "twin")
    assert sentence.endswith("it is open whether all gaps are below 0.01.")
    (sentence,) = figure_findings(Figure("rounds", finding="ratio"), close.with_columns(set_size=1), "twin")
    assert "times that (no difference beyond the 95 % interval)" not in sentence
    wide = close.with_columns(
        error_rate=polars.col("error_rate") + (polars.col("learner") == "a") * (1 - polars.col("seed")) * 0.1
    )
    (sentence,) = figure_findings(Figure("rounds", finding="ratio"), wide, "twin")
    assert "times that (no difference beyond the 95 % interval)" in sentence
    one = runs.filter(seed=0)
    sentences = figure_findings(Figure("set-size", finding="monotone"), one, None)
    assert sentences[-1] == "all data: one seed, so no interval: differences may be chance."


# ---------------------------------------------------------------- tables and charts


def points(chart):
    (values,) = chart.spec["datasets"].values()
    return values


def charts_of(store, i):
    """The charts of a figure of the experiment."""
    (runs, curves), experiment = store.frames("grid"), store.experiment("grid")
    figure, learners = experiment.spec_file.figures[i], experiment.learners
    return figure_charts(figure, f"grid-{i}", "", runs=runs, curves=curves, learners=learners)


@pytest.mark.slow
def test_two_experiments_keep_their_own_tables(store, tmp_path):
    """The best gammas of one were written over those of the other."""
    both = Store(tmp_path / "s")
    for name, gammas in (("one", "[0.05, 0.2]"), ("two", "[0.3, 0.8]")):
        text = GRID.replace("[0.05, 0.2, 0.8]", gammas).replace('"digits", "synsep"', '"digits"')
        run(read_spec(write_spec(tmp_path, text.replace("3000", "200"), name)), both)
    folder = write_report(both.folder).parent / "tables"
    for name, gammas in (("one", {0.05, 0.2}), ("two", {0.3, 0.8})):
        assert polars.read_csv(folder / f"{name}-best-gammas.csv")["SOBA"].item(0) in gammas
    names = [p.name for p in folder.iterdir()]
    assert all(name.startswith(("one-", "two-")) for name in names)


def test_the_papers_table_stands_beside_ours():
    from superarm.report.tables import PAPER_GAMMAS, _best_gammas

    rows = [("SOBA", 1, 0.02), ("SOBA", 1, 0.3)]
    rows += [("MC-DBF", m, g) for m in (2, 4, 7) for g in (0.1, 0.5)] + [("SetLogit", 2, None)]
    rows = [(data, *row, row[-1] or 0.0) for data in ("cifar10-vgg16", "synsep") for row in rows]
    runs = frame("data learner set_size gamma error_rate", rows)
    table = _best_gammas(runs)
    assert table["data"].to_list() == ["cifar10-vgg16", "synsep", "mnist", "fashion-mnist", "svhn"]
    assert table.row(0)[1:] == (0.02, 0.3, 0.1, 0.28, 0.1, 0.25, 0.1, 0.3)  # ours, the paper's, ours, …
    assert table.row(1)[1:] == (0.02, None, 0.1, None, 0.1, None, 0.1, None)
    assert table.row(2)[2::2] == PAPER_GAMMAS["mnist"]


def test_a_learner_without_gamma_is_a_level_line_in_the_gamma_figure(store):
    runs, _ = store.frames("grid")
    level = [p for p in points(charts_of(store, 0)[0]) if p["series"] == "Perceptron"]
    own = runs.filter(data="digits", learner="Perceptron")
    assert [p["x"] for p in level] == [0.05, 0.8]
    assert [p["mean"] for p in level] == pytest.approx([own["error_rate"].mean()] * 2, rel=1e-4)


def test_charts_that_were_parted_by_gamma_say_it_in_their_titles_and_file_names(store):
    """What all curves of a chart share is said once, in its title; and LaTeX reads its file's name."""
    learners = [f"learner {i}" for i in range(5)]
    rows = [
        {
            "data": "d",
            "learner": name,
            "set_size": 1,
            "gamma": gamma,
            "round": 10,
            "error_rate": 0.5,
            "seed": 0,
        }
        for name in learners
        for gamma in (0.1, 0.2)
    ]
    table = polars.DataFrame(rows)
    charts = figure_charts(Figure("rounds"), "e", "", runs=table, curves=table, learners=learners)
    assert [(chart.name, chart.title) for chart in charts] == [
        ("e-d-gamma-0-1", "d, γ = 0.1"),
        ("e-d-gamma-0-2", "d, γ = 0.2"),
    ]
    assert [{p["series"] for p in points(chart)} for chart in charts] == [set(learners)] * 2


def test_a_single_point_has_its_interval():
    """A band needs two points of a curve: a learner of single labels has one, in figures against m."""
    spec = line_chart(
        polars.DataFrame(
            {"series": ["SOBA"], "x": [1], "mean": [0.5], "low": [0.4], "high": [0.6], "n": [3]}
        ),
        x=Axis("m"),
        y=Axis("error"),
        styles={"SOBA": LineStyle("#000000", [1, 0])},
        points=True,
    )
    (rule,) = (layer["encoding"] for layer in spec["layer"] if layer["mark"]["type"] == "rule")
    assert (rule["y"]["field"], rule["y2"]["field"]) == ("low", "high")


@pytest.mark.slow
def test_no_chart_has_more_than_eight_curves():
    """Whatever a spec crosses: every curve is drawn once or more, and never more than eight together."""
    from superarm.report.figures import MAX_CURVES

    def drawn(kind, learners, sizes, gammas):
        rows = [
            {"data": "d", "learner": l, "set_size": m, "gamma": g, "round": t, "rounds": 100}
            | {"error_rate": 0.3, "miss_rate": 0.2, "shown_miss_rate": 0.2, "seed": s}
            for l in learners
            for m in sizes
            for g in gammas
            for t in ((10, 100) if kind == "rounds" else (100,))
            for s in (0, 1)
        ]
        rows += [
            r | {"learner": "alone", "set_size": 1, "gamma": None} for r in rows if r["set_size"] == sizes[0]
        ]
        table = polars.DataFrame(rows, infer_schema_length=None)
        names = (*learners, "alone")
        found = figure_charts(Figure(kind), "e", "", runs=table, curves=table, learners=names)
        series = [{p["series"] for p in points(chart)} for chart in found]
        assert max(map(len, series)) <= MAX_CURVES == 8
        assert len({chart.name for chart in found}) == len(found)
        return found, sum(len(names - {"alone"}) for names in series)

    for kind in ("rounds", "gamma", "set-size"):
        for learners in ("ab", "abcdefghi"):
            found, count = drawn(kind, learners, (2, 4), (0.1, 0.2, 0.3))
            wanted = len(learners) * (1 if kind == "set-size" else 2) * (1 if kind == "gamma" else 3)
            assert count == wanted, kind
    found, _ = drawn("rounds", "ab", (2, 4, 7), (0.1, 0.2, 0.3))
    assert [chart.title for chart in found] == ["d, m = 2", "d, m = 4", "d, m = 7"]
    assert all("alone" in chart.spec["description"] for chart in found)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (10, 1_000_000, [10, 100, 1e3, 1e4, 1e5, 1e6]),
        (0.0009, 0.4, [0.001, 0.01, 0.1]),
        (0.008, 0.07, [0.01, 0.02, 0.05]),
        (0.01, 1.0, [0.01, 0.1, 1.0]),
        (200, 320, [200, 250, 300]),
        (0.0701, 0.0702, [0.07015, 0.0702]),
    ],
)
def test_logarithmic_ticks_are_decades_first(low, high, ticks):
    found = log_ticks(low, high)
    if len(ticks) > 2:
        assert found == pytest.approx(ticks)
    assert 2 <= len(found) <= 9
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in found)


def test_every_logarithmic_axis_has_these_ticks(page):
    """As drawn: what the SVG says on its axes."""
    svg = (page.parent / "figures" / "grid-2-digits.svg").read_text()
    labels = re.findall(r">(0?\.?\d+[kM]?)</text>", svg)
    assert {"10", "100", "1k", "0.2", "0.5"} <= set(labels)
    assert not {"0.07", "0.3", "200", "300"} & set(labels)


# ---------------------------------------------------------------- looks


def lab(colour: str, matrix: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of a colour, as seen through a colour deficiency."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(matrix @ linear, 0.0, 1.0)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / np.array([0.9505, 1.0, 1.089]))
    f = np.where(
        xyz / np.array([0.9505, 1.0, 1.089]) > 0.008856, f, (903.3 * xyz / [0.9505, 1, 1.089] + 16) / 116
    )
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira & Fernandes 2009, severity 1.0
SIGHT = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("ink", [INK, "#FFFFFF"])
def test_colours_are_told_apart(sight, ink):
    seen = {c: lab(c if c != INK else ink, SIGHT[sight]) for c in PALETTE}
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


def test_curves_of_a_chart_never_look_the_same():
    from superarm.report.figures import curve_styles

    many = {f"learner {i}": f"learner {i}" for i in range(14)}
    grid = {f"{l}, m = {m}, γ = {g}": l for l in "AB" for m in (2, 4, 7) for g in (0.1, 0.2)}
    sizes = {f"{l}, m = {m}": l for l in "ABC" for m in (2, 4, 7)}
    for curves in (many, grid, sizes):
        learners = list(dict.fromkeys(curves.values()))
        styles = curve_styles(curves, learners)
        assert len({(style.colour, tuple(style.dash)) for style in styles.values()}) == len(curves)
    assert len({tuple(d) for d in DASHES}) == len(DASHES)


def test_a_learner_has_one_colour_in_all_charts_of_a_report():
    from superarm.report.figures import curve_styles

    learners = [f"learner {i}" for i in range(12)]  # more than there are colours
    sizes = {f"{l}, m = {m}": l for l in learners[1:4] for m in (2, 4, 7)}
    alone = {learners[3]: learners[3]}
    all_of_them = {l: l for l in learners}
    seen: dict[str, set[str]] = {l: set() for l in learners}
    crossed = {f"{learners[1]}, m = {m}": learners[1] for m in (2, 4)} | {
        f"{learners[2]}, m = {m}, γ = {g}": learners[2] for m in (2, 4) for g in (0.05, 0.2)
    }
    for curves in (sizes, alone, all_of_them, crossed):
        styles = curve_styles(curves, learners)
        assert len({(style.colour, tuple(style.dash)) for style in styles.values()}) == len(curves)
        for name, style in styles.items():
            seen[curves[name]].add(style.colour)
    assert all(len(colours) == 1 for colours in seen.values())
    assert seen[learners[1]] != seen[learners[2]]


MEASURE = """
const boxes = s => [...document.querySelectorAll(s)].map(e => e.getBoundingClientRect());
const charts = [...document.querySelectorAll(".chart")];
return {
  width: innerWidth,
  page: document.documentElement.scrollWidth,
  charts: charts.length,
  drawn: charts.filter(c => c.querySelectorAll("svg .mark-line path").length > 0).length,
  widest: Math.max(...boxes(".chart svg").map(b => b.right)),
  bands: document.querySelectorAll(".chart .mark-area path").length,
  legends: charts.map(c => {
    const legend = c.querySelector(".role-legend")?.getBoundingClientRect();
    const lines = [...c.querySelectorAll(".mark-line path")].map(p => p.getBoundingClientRect().bottom);
    return legend && legend.top >= Math.max(...lines) && legend.right <= c.getBoundingClientRect().right + 1;
  }),
  titles: charts.map(c => [...c.querySelectorAll(".role-axis-title text")].map(t => t.textContent)),
  background: getComputedStyle(document.body).backgroundColor,
  text: getComputedStyle(document.querySelector("h1")).color,
  axis: document.querySelector(".role-axis-label text").getAttribute("fill"),
  small: Math.min(
    ...[...document.querySelectorAll(".chart svg text")].map(t => parseFloat(getComputedStyle(t).fontSize))
  ),
};
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_in_a_real_browser(page, tmp_path, width, dark):
    seen = visit(
        page, tmp_path, width=width, dark=dark, ready="document.documentElement.dataset.drawn", script=MEASURE
    )
    assert seen.console == []
    found = seen.found
    assert found["width"] == width
    assert found["page"] <= width  # nothing sticks out to the side
    assert found["widest"] <= width
    assert found["charts"] == found["drawn"] == 5
    assert found["bands"] >= 5
    assert all(found["legends"]), "a legend covers curves or is cut off"
    assert all(any("share of rounds" in t for t in titles) for titles in found["titles"])
    assert all(len(titles) == 2 for titles in found["titles"])
    assert found["small"] >= 10
    light = [int(v) for v in re.findall(r"\d+", found["background"])][:3]
    assert (max(light) < 60) if dark else (min(light) > 240)
    assert found["axis"] == ("#b0b0b0" if dark else "#555555")


def test_the_browser_helper_sees_errors(tmp_path):
    page = tmp_path / "a.html"
    page.write_text("<html><body><script>console.error('ouch')</script></body></html>")
    seen = visit(page, tmp_path, script="return 1 + 1;")
    assert seen.found == 2
    assert any("ouch" in line for line in seen.console)
