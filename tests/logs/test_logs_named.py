"""Logs with words, dates and gaps: train, evaluate, decide and learn read the same columns the same way."""

from __future__ import annotations

import csv
import json

import numpy as np
import polars as pl
import pytest
from lab_kit import run

import superarm as sa
from superarm.data.inference import LIKELY_ID
from superarm.errors import InvalidInput
from superarm.logs import Log, LogColumns, Policy, Writer, evaluate, summarize, train

LABELS = ["books", "garden", "music", "tools", "toys"]
CITIES = ["Rome", "Oslo", "Lima", "Cairo"]
FEATURES = ("age", "income", "city", "vip", "joined")


def people(n, seed=0):
    """Rows as a CSV has them, and the right label: by age, income and city."""
    random, world = np.random.default_rng(seed), np.random.default_rng(1)
    weights, home = 2.0 * world.normal(size=(2, 5)), 2.0 * world.normal(size=(4, 5))
    for i in range(n):
        age, city, income = random.integers(18, 80), random.integers(4), np.exp(random.normal(10.5, 0.5))
        s = np.array([(age - 49) / 18, 2 * (np.log(income) - 10.5)]) @ weights + home[city]
        row = {
            "row": i,
            "customer_id": f"c{random.integers(10**9)}",
            "when": f"2024-01-{1 + i * 28 // n:02}T10:00",
            "age": age if random.random() > 0.05 else random.choice(["NA", "", "-"]),
            "income": round(income),
            "city": CITIES[city],
            "vip": random.choice(["true", "false"]),
            "joined": f"20{random.integers(10, 24)}-0{random.integers(1, 9)}-11",
        }
        yield row, LABELS[int(s.argmax())], random.permutation(5)[:2]


def write(path, rows):
    with path.open("w", newline="") as file:
        sheet = csv.DictWriter(file, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rows = []
    for row, label, shown in people(4000):
        names = [LABELS[r] for r in shown]
        rows.append(row | {"labels": "|".join(names), "hit": int(label in names)})
    return write(tmp_path_factory.mktemp("named") / "log.csv", rows)


READ = ("--uniform", "--separator", "|")


@pytest.mark.slow
def test_from_a_first_csv_to_answers(log, tmp_path):
    """A newcomer's way, without naming one column."""
    model = tmp_path / "model.npz"
    told = run("train", log, *READ, "--output", model)
    assert "income (numbers); city (words); vip (yes or no); joined (dates) (by the first 4,000 rows" in told
    assert "features: age (numbers, " in told
    assert "row (counts the rows); customer_id (an id); when (time: it goes on with the rows)" in told
    assert "WARNING" not in told
    told = run("evaluate", log, *READ, "--model", model)
    read = told.split("read: ")[1].split(", ")[1]
    assert float(read.split(" ")[0]) > 0.8
    # tonight
    tonight = [(row, label) for row, label, _ in people(300, seed=7)]
    rows = write(tmp_path / "tonight.csv", [row for row, _ in tonight])
    told = run("decide", model, rows, "--output", tmp_path / "d.parquet", "--id-column", "customer_id")
    assert "not used: row, when" in told
    made = pl.read_parquet(tmp_path / "d.parquet")
    hits = [label in shown for (_, label), shown in zip(tonight, made["labels"], strict=True)]
    assert np.mean(hits) > 0.75
    # the library reads the same rows to the same bits, be they texts or values
    learner = sa.load(model)
    texts = [{name: str(row[name]) for name in FEATURES} for row, _ in tonight]
    encoded = [learner.columns.encode_row(x, "this").tolist() for x in texts]
    assert encoded == made["x"].to_list()
    made.select("id", hit=pl.Series(hits)).write_csv(tmp_path / "answers.csv")
    assert "learnt from 300 answers" in run("learn", model, tmp_path / "d.parquet", tmp_path / "answers.csv")


@pytest.mark.slow
def test_the_named_model_knows_more_than_the_numbers(log, tmp_path):
    """Words and gaps are worth something: the city decides half of it here."""
    rates = []
    for extra in ((), ("--features-columns", "income,vip")):
        run("train", log, *READ, *extra, "--output", tmp_path / "m.npz", "--force")
        told = json.loads(run("evaluate", log, *READ, "--model", tmp_path / "m.npz", "--json"))
        rates.append(told["results"][0]["estimates"][-1]["value"])
    assert rates[0] > rates[1] + 0.1


def test_plain_tables_give_plain_rows(tmp_path):
    rows = [
        {"b": i % 7, "a": (i * 5) % 11 / 2, "labels": "x;y" if i % 2 else "y;z", "hit": i % 3 == 0}
        for i in range(60)
    ]
    log = Log(write(tmp_path / "log.csv", rows))
    assert log.feature_columns.is_numeric_only
    assert [r.decision.x.tolist() for r in log][1] == [1.0, 2.5]
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    train(log, learner, summary)
    # by name or in order
    named = learner.scores([{"a": 2.5, "b": 1}])
    assert np.array_equal(named, learner.scores([[1.0, 2.5]]))
    with pytest.warns(sa.ColumnWarning, match="column 'c' is new: it is left out"):
        assert np.array_equal(named, learner.scores(pl.DataFrame({"a": [2.5], "c": [9], "b": [1]})))
    assert learner.rank({"a": "2.5", "b": 1}) == learner.rank([1.0, 2.5])
    decision = learner.decide({"a": 2.5, "b": 1})
    learner.update(decision, hit=True)
    assert decision.x == {"a": 2.5, "b": 1}  # as it came
    mean = learner.columns.columns["b"].imputed
    assert learner.rank({"a": 1.0, "b": None}) == learner.rank([mean, 1.0])  # a gap is the mean of the look
    with pytest.warns(sa.ColumnWarning, match="column 'b' holds numbers, got 'many': the number counts as"):
        learner.decide({"a": 1.0, "b": "many"})


@pytest.mark.slow
def test_models_of_different_columns_side_by_side(log, tmp_path):
    for name, columns in (("one", "age,city"), ("two", "income,vip"), ("three", "income")):
        run("train", log, *READ, "--features-columns", columns, "--output", tmp_path / f"{name}.npz")
    models = [part for name in ("one", "two", "three") for part in ("--model", tmp_path / f"{name}.npz")]
    together = json.loads(run("evaluate", log, *READ, *models, "--json"))["results"]
    for i, name in enumerate(("one", "two", "three")):
        alone = json.loads(run("evaluate", log, *READ, "--model", tmp_path / f"{name}.npz", "--json"))
        # the reward model of dr sees other columns, the weights do not
        for j in (0, 1, 3):
            assert alone["results"][0]["estimates"][j]["value"] == together[i]["estimates"][j]["value"]


@pytest.mark.slow
def test_a_model_whose_labels_stand_in_another_order(log, tmp_path):
    (tmp_path / "labels.txt").write_text("\n".join(reversed(LABELS)))
    run("train", log, *READ, "--output", tmp_path / "a.npz")
    run("train", log, *READ, "--labels", tmp_path / "labels.txt", "--output", tmp_path / "b.npz")
    assert sa.load(tmp_path / "b.npz").labels == tuple(reversed(LABELS))
    both = ("--model", tmp_path / "a.npz", "--model", tmp_path / "b.npz")
    told = json.loads(run("evaluate", log, *READ, *both, "--json"))
    one, two = (result["estimates"][-1]["value"] for result in told["results"])
    assert one == pytest.approx(two, abs=0.03)
    source = Log(log, separator="|", uniform=True)
    answer = evaluate(source, [Policy("b", learner=sa.load(tmp_path / "b.npz"))], summarize(source))
    assert answer.results[0].best.value > 0.8
    other = sa.SetLogit(labels=[*LABELS[:4], "cars"], set_size=2)
    with pytest.raises(InvalidInput, match="labels of o must be those of the log"):
        evaluate(source, [Policy("o", learner=other)], summarize(source))


def test_dsjson_of_words_alone(tmp_path):
    random = np.random.default_rng(0)
    lines = []
    for i in range(2000):
        city, order = random.choice(CITIES), random.permutation(3)
        best = CITIES.index(city) % 3
        lines.append(json.dumps({
            "_label_cost": -1.0 if order[0] == best else 0.0, "_label_Action": int(order[0]) + 1,
            "EventId": str(i), "a": [int(a) + 1 for a in order], "p": [1 / 3] * 3,
            "c": {"User": {"city": city}, "_multi": [{"_tag": t} for t in ("news", "sports", "film")]},
        }))  # fmt: skip
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(lines))
    told = run("train", path, "--output", tmp_path / "m.npz", "--set-size", 1)
    assert "features: User.city (words) (by the first 2,000 rows)\n" in told
    told = run("evaluate", path, "--model", tmp_path / "m.npz")
    assert float(told.split("read: ")[1].split(", ")[1].split(" ")[0]) > 0.9


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_rows_with_names_in_a_log_of_ours(tmp_path, ending):
    """Sets that somebody else chose, written by superarm with rows as they were."""
    with Writer(tmp_path / f"log.{ending}") as out:
        for row, label, shown in people(200):
            names = [LABELS[r] for r in shown]
            x = {name: row[name] for name in ("income", "city")}
            out.add(sa.Decision.given(x, names), hit=label in names)
    log = Log(tmp_path / f"log.{ending}", uniform=True)
    assert log.feature_columns.kinds == {"income": "numbers", "city": "words"}
    assert next(iter(log)).decision.x["city"] in CITIES
    summary = summarize(log)
    learner = sa.SetLogit(**summary.learner_params)
    assert train(log, learner, summary).rows > 100
    assert learner.columns.kinds == {"income": "numbers", "city": "words"}


def test_what_a_named_model_has_served_is_judged_by_it(log, tmp_path):
    """Rows with names go through serving and back: the log has them in x, and the model knows its columns."""
    run("train", log, *READ, "--output", tmp_path / "m.npz")
    served = sa.load(tmp_path / "m.npz")
    with Writer(tmp_path / "next.parquet") as out:
        for row, label, _ in people(800, seed=3):
            made = served.decide({name: row[name] for name in FEATURES})
            out.add(made, hit=label in made.labels, id=row["customer_id"])
    told = run("evaluate", tmp_path / "next.parquet", "--model", tmp_path / "m.npz")
    assert "judged by 800 rows" in told
    assert "read: " in told
    told = run("train", tmp_path / "next.parquet", "--output", tmp_path / "n.npz")
    assert "features: age (numbers, " in told
    assert "city (words)" in told


def test_scores_of_a_model_that_wants_a_frame(log):
    seen = []

    def model(X):
        seen.append(X)
        return np.stack([X["income"].to_numpy(), *[np.zeros(len(X))] * 4], axis=1)

    source = Log(log, separator="|", uniform=True)
    answer = evaluate(source, [Policy("own", scores=model, set_size=2)], summarize(source))
    assert len(answer.results) == 1
    frame = answer.to_frame()
    assert frame["policy"].unique().to_list() == ["own"]
    assert frame["name"].to_list() == [one.name for one in answer.results[0].estimates]
    assert seen[0].columns == list(FEATURES)
    assert seen[0]["city"].to_list()[0] in CITIES


def test_columns_that_lack(log, tmp_path):
    run("train", log, *READ, "--output", tmp_path / "m.npz")
    people = [{"income": 30_000, "city": "Rome"}, {"income": 20_000, "city": "Oslo"}]
    rows = write(tmp_path / "some.csv", people)
    told = run("decide", tmp_path / "m.npz", rows, "--output", tmp_path / "d.parquet")
    assert "missing in every row: age, vip, joined (not in " in told
    assert "ids: the numbers of their rounds, 0 to 1 (--id-column names the rows' own)" in told
    none = write(tmp_path / "none.csv", [{"size": 3}])
    with pytest.raises(InvalidInput, match=r"columns of .*none\.csv must be some of age, income, city"):
        run("decide", tmp_path / "m.npz", none, "--output", tmp_path / "d.parquet", "--force")
    frame = pl.DataFrame({"labels": [["a"], ["b"]], "hit": [1, 0]})
    with pytest.raises(InvalidInput, match=r"features of .* must be an x column, .* got lists in labels"):
        Log(frame, columns=LogColumns(features=("labels",)))


@pytest.mark.slow
def test_what_an_answer_would_take(log, tmp_path):
    """The threshold, what was found, and the ways out: more rows, more kept out, uniform sets."""
    short = tmp_path / "short.csv"
    short.write_text("\n".join(log.read_text().splitlines()[:2501]))
    run("train", short, *READ, "--output", tmp_path / "m.npz")
    told = run("evaluate", short, *READ, "--model", tmp_path / "m.npz", "--set-size", 1)
    assert "rows: it takes 100\n" in told
    warning = told.split("WARNING: ")[1]
    assert warning.startswith("this log cannot answer for this policy; about ")
    assert "such rows to judge by would (train and evaluate with --holdout 0." in warning
    share = warning.split("--holdout ")[1].split(":")[0]
    # and it does
    run("train", short, *READ, "--output", tmp_path / "m.npz", "--holdout", share, "--force")
    told = run("evaluate", short, *READ, "--model", tmp_path / "m.npz", "--set-size", 1)
    assert "read: " in told
    told = run("evaluate", short, *READ, "--fixed", "books,toys", "--set-size", 1)
    assert "--holdout" not in told  # all rows judge already


def test_a_log_without_propensities_is_told_about_uniform(log):
    told = run("evaluate", log, "--separator", "|", "--fixed", "books,toys")
    assert "The log does not say how probable its sets were" in told
    assert "If the sets were drawn uniformly at random, say so (uniform); else" in told


def test_a_feature_of_a_services_log_that_never_has_a_value_is_left_out(tmp_path):
    rows = [
        {"x": {"age": 20 + i % 9, "z": None}, "labels": ["books", "toys"], "hit": i % 2} for i in range(60)
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    told = run("train", path, "--output", tmp_path / "m.npz")
    assert "features: age (numbers) (by the first 60 rows)\nleft out: z (empty)\n" in told
    assert sa.load(tmp_path / "m.npz").columns.names == ["age"]
    alone = Log([row | {"x": {"z": None}} for row in rows])  # better than nothing
    assert alone.feature_columns.names == ["z"]


def test_ids_in_x_are_left_out_as_those_in_columns_are(tmp_path):
    rows = [
        {"ticket": f"TCK-{i}", "f0": (i * 7 % 11) / 2, "city": ["Rome", "Oslo", "Bern"][i % 3]}
        for i in range(90)
    ]
    answers = [{"labels": json.dumps(["a", "b"][i % 2 :]), "hit": i % 3 == 0} for i in range(90)]
    in_x = [{"x": json.dumps(x), **answer} for x, answer in zip(rows, answers, strict=True)]
    in_columns = [x | answer for x, answer in zip(rows, answers, strict=True)]
    found = [summarize(Log(table)).feature_columns for table in (in_x, in_columns)]
    assert [columns.names for columns in found] == [["f0", "city"]] * 2
    assert [columns.left_out["ticket"] for columns in found] == [LIKELY_ID] * 2
    declared = Log(in_x, columns=LogColumns(kinds={"ticket": "words"}))
    assert summarize(declared).feature_columns.names == ["ticket", "f0", "city"]
