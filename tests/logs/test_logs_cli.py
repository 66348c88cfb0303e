"""superarm train and evaluate, as a new user would call them."""

from __future__ import annotations

import json
import textwrap

import numpy as np
import pytest
from lab_kit import run

import superarm as sa
from superarm.errors import InvalidInput
from superarm.logs import Log, LogColumns, is_held_out_row, summarize

COLOURS = ["blue", "green", "pink", "red"]
ROWS = 2400


@pytest.fixture(scope="module")
def slates(tmp_path_factory):
    """A CSV of past slates: shown two colours at random, clicked or not."""
    random = np.random.default_rng(0)
    lines = ["visitor,age,income,first,second,clicked"]
    for i in range(ROWS):
        y = int(random.integers(4))
        first, second = random.permutation(4)[:2]
        age, income = (turn(y * np.pi / 2) + 0.3 * random.normal() for turn in (np.cos, np.sin))
        clicked = int(y in (first, second) and random.random() < 0.8)
        lines.append(f"v{i},{age:.3f},{income:.3f},{COLOURS[first]},{COLOURS[second]},{clicked}")
    path = tmp_path_factory.mktemp("cli") / "slates.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


HELD_OUT = sum(is_held_out_row(i, 0.2) for i in range(ROWS))
MAPPED = ("--labels-column", "first,second", "--hit-column", "clicked", "--uniform")


def first_rows(slates, path, rows):
    """A shorter log in a file of its own."""
    path.write_text("".join(slates.read_text().splitlines(keepends=True)[: rows + 1]))
    return path


@pytest.mark.smoke
def test_a_csv_becomes_a_model_and_an_honest_evaluation(slates, tmp_path):
    model = tmp_path / "model.npz"
    told = run("train", slates, *MAPPED, "--output", model, "--passes", 2)
    assert "2,400 rows, 4 labels\nfeatures: age, income (numbers) (by the first 2,400 rows)\n" in told
    left = "visitor (an id: hardly any word twice); first, second (the set); clicked (the outcome)"
    assert f"left out: {left}\n" in told
    assert "hit rate of its top set" in told
    learner = sa.load(model)
    assert learner.labels == tuple(COLOURS)
    assert learner.set_size == 2
    told = run("evaluate", slates, *MAPPED, "--model", model)
    assert f"judged by {HELD_OUT} rows" in told
    assert "overlap" in told
    assert "read: " in told
    value = float(told.split("read: ")[1].split(", ")[1].split(" ")[0])
    assert value > 0.6  # at random 0.4 of the slates are clicked


def test_json_is_all_there_is(slates, tmp_path):
    model = tmp_path / "model.npz"
    told = json.loads(run("train", slates, *MAPPED, "--output", model, "--json"))
    assert told["rows"] + told["held_out"] == ROWS
    assert told["features"] == ["age", "income"]
    told = json.loads(run("evaluate", slates, *MAPPED, "--model", model, "--json"))
    names = [e["name"] for e in told["results"][0]["estimates"]]
    assert names == ["ips", "snips", "dr", "pi", "pi-dr"]
    foreign = json.loads(run("evaluate", slates, *MAPPED, "--fixed", "red,blue", "--json"))
    assert foreign["rows"] == ROWS


def test_clicks_without_noes_are_told_first_and_can_be_said_to_be_noes(slates, tmp_path):
    clicks, slates = tmp_path / "clicks.csv", first_rows(slates, tmp_path / "first.csv", 1000)
    lines = slates.read_text().splitlines()
    clicks.write_text("\n".join(line[:-1] + '""' if line.endswith(",0") else line for line in lines) + "\n")
    of_all, of_clicks = (
        json.loads(run("evaluate", path, *MAPPED, "--fixed", "red,blue", *more, "--json"))
        for path, more in ((slates, ()), (clicks, ("--empty-is-no",)))
    )
    assert of_clicks["results"] == of_all["results"]
    for command in (("evaluate", "--fixed", "red,blue"), ("train", "--output", tmp_path / "model.npz")):
        told = run(command[0], clicks, *MAPPED, *command[1:])
        assert told.splitlines()[2 if command[0] == "evaluate" else 1].startswith("WARNING: All "), told
        assert "that are there are yes" in told
        assert "--empty-is-no" in told
        assert "propensities are" not in told
    some = tmp_path / "yes.csv"
    some.write_text("\n".join(line for line in lines if not line.endswith(",0")) + "\n")
    told = run("evaluate", some, *MAPPED, "--fixed", "red,blue")
    assert "answers are yes: right for sets of candidates that hold the label" in told


def test_whole_labels_that_pandas_writes_as_floats_are_those_of_the_frame(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"age": range(9), "a": [1, 2, 3] * 3, "b": [2, 3, None] * 3, "hit": [1, 0, 1] * 3})
    path = tmp_path / "float.csv"
    frame.to_csv(path, index=False)
    assert "2.0" in path.read_text()
    columns = LogColumns(labels=("a", "b"))
    of_frame, of_file = (summarize(Log(source, columns=columns)) for source in (frame, path))
    assert of_frame.labels == of_file.labels == (1, 2, 3)
    names = [{"age": i, "a": name, "b": "1.5", "hit": 1} for i, name in enumerate(["2.0", "1.0"])]
    assert summarize(Log(names, columns=columns)).labels == ("1.0", "1.5", "2.0")  # versions, say


def test_the_grid_and_its_figure(slates, tmp_path):
    figure, short = tmp_path / "grid.SVG", first_rows(slates, tmp_path / "short.csv", 1000)
    told = run(
        "evaluate", short, *MAPPED, "--learner", "set-logit", "--learner", "mc-dbf:estimate=set",
        "--fixed", "red,blue", "--set-size", "1,2,3", "--gamma", "0.1,0.5", "--grid", "--figure", figure,
    )  # fmt: skip
    assert told.count("set-logit") >= 6
    assert told.count("mc-dbf:estimate=set") >= 6
    assert "red,blue" in told
    assert figure.read_text().startswith("<svg")
    with pytest.raises(InvalidInput, match=r"--figure of superarm evaluate must be a file that ends in one"):
        run("evaluate", slates, *MAPPED, "--fixed", "red,blue", "--figure", tmp_path / "grid.txt")
    tiny = first_rows(slates, tmp_path / "tiny.csv", 40)
    told = run("evaluate", tiny, *MAPPED, "--fixed", "red,blue", "--grid")
    assert "cannot say" in told
    assert "the log cannot answer" in told
    assert "WARNING: this log cannot answer" in run("evaluate", tiny, *MAPPED, "--fixed", "red,blue")


def test_a_log_that_cannot_answer_gives_its_table_and_no_figure(slates, tmp_path):
    tiny, figure = first_rows(slates, tmp_path / "tiny.csv", 40), tmp_path / "figure.svg"
    ask = ("evaluate", tiny, *MAPPED, "--fixed", "red,blue", "--figure", figure)
    note = "no figure: the log can answer for no policy"
    shown = run(*ask)
    assert "cannot say" in shown
    assert note in shown.splitlines()
    lines = run(*ask, "--json").splitlines()
    lines.remove(note)
    assert not figure.exists()
    for estimate in json.loads("".join(lines))["results"][0]["estimates"]:
        assert estimate["problem"]
        assert [estimate[name] for name in ("value", "low", "high", "width")] == [None] * 4


def test_bad_rows_are_named_or_counted(slates, tmp_path):
    broken = first_rows(slates, tmp_path / "broken.csv", 400)
    lines = broken.read_text().splitlines()
    lines[7] = lines[7][:-1] + "perhaps"
    broken.write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidInput, match=r"clicked of .*broken.csv, row 7 must be true or false"):
        run("train", broken, *MAPPED, "--output", tmp_path / "m.npz")
    told = run("train", broken, *MAPPED, "--output", tmp_path / "m.npz", "--skip-bad")
    assert "1 rows skipped, the first: clicked of" in told
    told = run("evaluate", broken, *MAPPED, "--model", tmp_path / "m.npz", "--skip-bad")
    assert "1 rows skipped as bad" in told


def test_simulate_writes_a_log(tmp_path):
    log = tmp_path / "log.parquet"
    common = [
        "simulate",
        "--data",
        "digits",
        "--learner",
        "mc-dbf",
        "--set-size",
        "3",
        "--rounds",
        "1500",
        "--json",
    ]
    a = json.loads(run(*common, "--gamma", 0.5, "--log", log))
    b = json.loads(run(*common, "--gamma", 0.5))
    assert a["mean"] == b["mean"]
    told = run("train", log, "--learner", "mc-dbf", "--output", tmp_path / "m.npz", "--labels", 10)
    assert "mc-dbf: learnt from" in told
    assert "log loss is" not in told
    with pytest.raises(InvalidInput, match="--log of simulate must be used with one learner and one seed"):
        run(*common, "--seeds", 2, "--log", log)


def test_a_model_that_saw_other_rows(slates, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(slates.read_text().replace("v1,", "w1,"))
    for name, holdout in (("whole", 0.0), ("part", 0.2), ("half", 0.5)):
        run("train", slates, *MAPPED, "--output", tmp_path / f"{name}.npz", "--holdout", holdout)
    told = run("evaluate", other, *MAPPED, "--model", tmp_path / "part.npz")
    assert "make sure that it never saw these rows" in told
    assert "judged by 2,400 rows" in told
    with pytest.raises(InvalidInput, match="must be trained with rows kept out"):
        run("evaluate", slates, *MAPPED, "--model", tmp_path / "whole.npz")
    with pytest.raises(InvalidInput, match="trained with the same --holdout and --seed"):
        run("evaluate", slates, *MAPPED, "--model", tmp_path / "part.npz", "--model", tmp_path / "half.npz")
    with pytest.raises(InvalidInput, match="trained with the same --holdout and --seed"):
        run("evaluate", slates, *MAPPED, "--model", tmp_path / "half.npz", "--learner", "set-logit")


def test_labels_from_a_file(slates, tmp_path):
    names = tmp_path / "labels.txt"
    names.write_text("\n".join([*COLOURS, "violet"]) + "\n")
    run("train", slates, *MAPPED, "--output", tmp_path / "m.npz", "--labels", names)
    assert sa.load(tmp_path / "m.npz").n_labels == 5
    told = run("evaluate", slates, *MAPPED, "--model", tmp_path / "m.npz", "--set-size", 3)
    assert f"{HELD_OUT} rows" in told
    assert "m.npz, m = 3" in told


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ((), "no policy: give --model, --learner, --scores"),
        (("--fixed", "red", "--gamma", "a"), "--gamma of evaluate must be numbers with commas between"),
        (("--learner", "set-logit", "--set-size", "1,2"), r"--set-size of evaluate must be one number"),
        (("--fixed", "red", "--holdout", "1"), r"--holdout of evaluate must be in \(0, 1\)"),
        (("--fixed", "red", "--labels", "none.txt"), "--labels of superarm must be a UTF-8 text file"),
        (("--fixed", "red", "--coverage", "0.9"), "--coverage of evaluate must be left out with --fixed"),
        (("--learner", "set-logit", "--gamma", "0.1", "--coverage", "0.9"), "must be left out with --gamma"),
        (("--learner", "set-logit", "--coverage", "1.5"), r"coverage of set-logit must be in \(0, 1\)"),
    ],
)
def test_what_evaluate_refuses(slates, extra, message):
    with pytest.raises(InvalidInput, match=message):
        run("evaluate", slates, *MAPPED, *extra)


def halves(slates, tmp_path):
    """The log in two files; ids begin again in the second."""
    head, *lines = slates.read_text().splitlines()
    paths = tmp_path / "january.csv", tmp_path / "february.csv"
    for path, part in zip(paths, (lines[:900], lines[900:]), strict=True):
        rows = [f"v{i},{line.partition(',')[2]}" for i, line in enumerate(part)]
        path.write_text("\n".join([head, *rows]) + "\n")
    return paths


def test_a_log_that_is_given_twice_is_refused(slates, tmp_path):
    copy = tmp_path / "copy.csv"
    copy.write_bytes(slates.read_bytes())
    for second in (slates, copy):
        with pytest.raises(InvalidInput, match="logs of Log must be different, as rows would count twice"):
            run("train", slates, second, *MAPPED, "--output", tmp_path / "m.npz")


def test_a_model_that_goes_on_cannot_forget_labels(slates, tmp_path):
    model, few = tmp_path / "m.npz", tmp_path / "few.txt"
    run("train", slates, *MAPPED, "--output", model)
    few.write_text("red\nblue\n")
    for fewer in (few, 3):
        with pytest.raises(InvalidInput, match="--model must be new labels, beside the 4 that the model has"):
            run("train", slates, *MAPPED, "--model", model, "--labels", fewer, "--output", tmp_path / "n.npz")


@pytest.mark.parametrize("more", [(), ("--group", "first"), ("--set-size", "1,2", "--grid")])
def test_a_log_is_parsed_once_beside_its_first_rows_and_hashed_once(slates, monkeypatch, more):
    from superarm.data import tables

    parsed, hashed = [], []
    rows, digest = tables.csv_rows, tables.file_digest

    def counted(path):
        for row in rows(path):
            parsed.append(1)
            yield row

    monkeypatch.setitem(tables.READERS, ".csv", counted)
    monkeypatch.setattr(tables, "file_digest", lambda path: hashed.append(1) or digest(path))
    run("evaluate", slates, *MAPPED, "--learner", "set-logit", *more)
    assert len(parsed) == 200 + 2 * ROWS  # which columns there are, what they are, and all rows
    assert len(hashed) == 1


def test_several_logs_at_once_or_one_after_another_give_the_same_model(slates, tmp_path):
    first, second = halves(slates, tmp_path)
    both, one, two = (tmp_path / f"{name}.npz" for name in ("both", "one", "two"))
    told = json.loads(run("train", first, second, *MAPPED, "--output", both, "--json"))
    assert told["logs"] == [str(first), str(second)]
    assert told["features"] == ["age", "income"]
    assert told["rows"] + told["held_out"] == ROWS
    run("train", first, *MAPPED, "--output", one)
    told = json.loads(run("train", second, *MAPPED, "--model", one, "--output", two, "--json"))
    assert told["learner"] == "set-logit"
    assert not told["warnings"]
    X = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_array_equal(sa.load(both).scores(X), sa.load(two).scores(X))
    assert (sa.load(one).scores(X) != sa.load(two).scores(X)).any()
    learnt = [list(note["logs"].values()) for note in sa.load(two).metadata["training"]]
    assert learnt == [["january.csv"], ["february.csv"]]
    told = run("train", second, *MAPPED, "--model", two, "--output", two, "--force")
    assert "WARNING: february.csv was learnt from before: its rows count twice" in told


def test_a_model_of_two_logs_is_judged_by_rows_of_either_that_it_has_not_seen(slates, tmp_path):
    first, second = halves(slates, tmp_path)
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    run("train", first, *MAPPED, "--output", one)
    run("train", second, *MAPPED, "--model", one, "--output", two)
    kept = [sum(is_held_out_row(i, 0.2) for i in range(n)) for n in (900, ROWS - 900)]
    for log, rows in (((first,), kept[0]), ((second,), kept[1]), ((first, second), sum(kept))):
        told = run("evaluate", *log, *MAPPED, "--model", two)
        assert f"judged by {rows:,} rows" in told
        assert "was not trained" not in told
    told = run("evaluate", first, second, *MAPPED, "--model", one)
    assert "one.npz was not trained on february.csv by superarm train" in told


def test_a_model_that_goes_on_keeps_what_it_has(slates, tmp_path):
    first, second = halves(slates, tmp_path)
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    run("train", first, *MAPPED, "--output", one)
    options = {"--learner": "set-logit", "--set-size": 3, "--columns": one}
    for option, value in (options | {"--features-columns": "age", "--leave-out": "age"}).items():
        with pytest.raises(InvalidInput, match=r"of superarm train must be left out: .*one.npz has its own"):
            run("train", second, *MAPPED, "--model", one, "--output", two, option, value)
    new = tmp_path / "new.csv"
    new.write_text(second.read_text().replace("red", "violet"))
    with pytest.raises(InvalidInput, match=r"labels of .*new.csv must be among the given ones"):
        run("train", new, *MAPPED, "--model", one, "--output", two)
    names = tmp_path / "labels.txt"
    names.write_text("blue\nviolet\n")
    run("train", new, *MAPPED, "--model", one, "--output", two, "--labels", names)
    assert sa.load(two).labels == (*COLOURS, "violet")


def test_the_row_of_a_bad_cell_is_that_of_its_own_file(slates, tmp_path):
    first, second = halves(slates, tmp_path)
    lines = second.read_text().splitlines()
    lines[7] = lines[7][:-1] + "perhaps"
    second.write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidInput, match=r"clicked of .*february.csv, row 7 must be true or false"):
        run("train", first, second, *MAPPED, "--output", tmp_path / "m.npz")
    X = tmp_path / "X.npy"
    np.save(X, np.zeros((ROWS, 2)))
    for option in ("--features", "--vectors"):
        with pytest.raises(InvalidInput, match="left out: its rows belong to those of one log"):
            run("train", first, second, *MAPPED, "--output", tmp_path / "m.npz", option, X)


def test_evaluate_is_told_what_columns_are(slates, tmp_path):
    """As train is: what a learner is trained on there, it is trained on here."""
    odd = tmp_path / "odd.csv"
    head, *lines = slates.read_text().splitlines()[:1201]
    odd.write_text("\n".join([head + ",code", *(f"{line},{i % 4}" for i, line in enumerate(lines))]) + "\n")
    model, half = tmp_path / "m.npz", ("--holdout", 0.5)
    for kinds in ("--words code --text visitor --leave-out age", "--numbers code"):
        options = (*kinds.split(), *half)
        told = json.loads(run("train", odd, *MAPPED, *options, "--output", model, "--force", "--json"))
        here = json.loads(run("evaluate", odd, *MAPPED, *options, "--learner", "set-logit", "--json"))
        there = json.loads(run("evaluate", odd, *MAPPED, "--model", model, "--json"))
        rates = [one["results"][0]["estimates"][-1]["value"] for one in (here, there)]
        assert rates[0] == pytest.approx(rates[1], abs=1e-9)
        assert told["history"][-1]["hit_rate"]["value"] == pytest.approx(rates[0], abs=1e-9)
    by_file = ("--columns", tmp_path / "m.columns.json")
    same = json.loads(run("evaluate", odd, *MAPPED, *by_file, *half, "--learner", "set-logit", "--json"))
    assert same["results"][0]["estimates"][-1]["value"] == pytest.approx(rates[0], abs=1e-9)
    with pytest.raises(InvalidInput, match="columns of evaluate must be left to --model"):
        run("evaluate", odd, *MAPPED, "--model", model, "--words", "code")


def test_dates_that_could_be_two_days_are_warned_of(slates, tmp_path):
    dated = tmp_path / "dated.csv"
    head, *lines = slates.read_text().splitlines()
    rows = [f"{line},{1 + i % 12}/{1 + i % 7}/2024" for i, line in enumerate(lines)]
    dated.write_text("\n".join([head + ",due", *rows]) + "\n")
    told = run("train", dated, *MAPPED, "--output", tmp_path / "m.npz")
    assert "due (dates, day first, which no cell tells)" in told
    assert "WARNING: 1/2/2024 is read as 1 February, since no cell shows the order" in told


def test_a_log_of_text_alone_says_what_its_features_are(tmp_path):
    table, log = tmp_path / "texts.csv", tmp_path / "log.jsonl"
    words = {"red": "blood and roses", "green": "grass in spring", "blue": "sky over sea"}
    lines = [f"{words[colour]} number {i},{colour}" for i in range(60) for colour in words]
    table.write_text("text,colour\n" + "\n".join(lines) + "\n")
    common = ("--rounds", 180, "--set-size", 2, "--text", "text", "--log", log)
    run("simulate", "--data", table, "--label", "colour", *common)
    assert "features: sparse rows with " in run("train", log, "--output", tmp_path / "m.npz")


def test_a_log_whose_sets_were_drawn_by_a_rule_of_ones_own(tmp_path):
    """Its name is known once its file is: a policy then has weights, where the log alone gives none."""
    rule = """
        from superarm.explore import Choice, Mixture, PlainRule

        class Turns(PlainRule):
            name = "turns-of-this-test"

            def choose(self, context):
                return Choice([context.round % len(context.scores)], 1.0)

            @classmethod
            def distribution_from(cls, record, top, eligible, m):
                return Mixture(eligible, 1, [([label], 1 / len(eligible)) for label in eligible])
    """
    (tmp_path / "turns.py").write_text(textwrap.dedent(rule))
    rows = [
        {"a": i % 7, "labels": [i % 3], "hit": i % 3 == i % 2, "rule": {"name": "turns-of-this-test"}}
        for i in range(600)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    unknown = json.loads(run("evaluate", log, "--fixed", 0, "--json"))
    assert "The rule 'turns-of-this-test' that drew sets is not known" in unknown["warnings"][0]
    assert unknown["results"][0]["best"] is None
    rule_option = f"--log-rule={tmp_path}/turns.py:Turns"
    known = json.loads(run("evaluate", log, "--fixed", 0, rule_option, "--json"))
    assert known["warnings"] == []
    assert known["results"][0]["best"] is not None
