"""A made-up table of support tickets, by every way in:  python benchmarks/tickets.py [--rows N] [--noise]

12 teams; a text that decides, a site, numbers, a date, yes or no, gaps. A log says which three teams were shown,
at random, and whether the ticket was solved. The figure is how often the right team is among the three best of 2,000
new tickets; at least .985 is wanted by every way in:

  train       superarm.logs on the CSV                 frame      the same on a pandas frame
  dicts       one row at a time, nothing declared      sklearn    partial_fit on a pandas frame
  service     sets of its own, nothing declared        simulate   sets of its own, from the CSV
  declared    service with the columns of `train`

With --noise, text beside ten columns of noise, and without them: the errors of `simulate` on FILE (banking77.csv).
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import superarm as sa
from superarm.logs import Log, LogColumns, summarize, train
from superarm.service import DecisionRequest, OutcomeRequest, Service
from superarm.sklearn import SetFeedbackClassifier
from superarm.streams import Arrays, from_frame
from superarm.streams.data_files import read_data

THINGS = {
    "access": "password login badge account locked", "backup": "restore backup snapshot deleted recover",
    "billing": "invoice refund charge payment receipt", "email": "mailbox outlook spam attachment calendar",
    "hardware": "laptop keyboard monitor battery fan", "hr": "payroll holiday contract salary leave",
    "legal": "licence contract privacy clause consent", "mobile": "phone sim roaming tablet app",
    "network": "wifi vpn router latency cable", "printing": "printer toner paper scanner jam",
    "security": "phishing virus breach certificate alert", "web": "website page browser form login",
}  # fmt: skip
TEAMS = list(THINGS)
SAID = """the my please help with again since this morning not working cannot urgent colleague still after update
nobody office today need it is was on in for error message broken slow new old first second floor thanks"""
FILLER = SAID.split()
SITES = ["Rome", "Oslo", "New York", "Lima", "Pune"]
FEATURES = ["text", "site", "age", "load", "opened", "vip"]


def tickets(n: int, seed: int) -> list[dict[str, Any]]:
    """Rows with their team; one text in a hundred says nothing, a word in ten has an s, cells are missing."""
    random, rows = np.random.default_rng(seed), []
    law = 1.0 / np.arange(1, len(FILLER) + 1)
    for i in range(n):
        team = TEAMS[random.integers(len(TEAMS))]
        words = list(random.choice(FILLER, random.integers(4, 10), p=law / law.sum()))
        said = 0 if random.random() < 0.01 else random.integers(1, 3)
        for word in random.choice(THINGS[team].split(), said, replace=False):
            words.insert(random.integers(len(words) + 1), f"{word}s" if random.random() < 0.1 else word)
        text = " ".join(words)
        rows.append(
            {
                "ticket": f"T{100_000 + 7 * i}",
                "text": text.capitalize() if random.random() < 0.5 else text,
                "site": None if random.random() < 0.05 else SITES[random.integers(len(SITES))],
                "age": None if random.random() < 0.1 else int(random.integers(18, 66)),
                "load": None if random.random() < 0.1 else round(float(random.lognormal()), 2),
                "opened": f"2024-{random.integers(1, 13):02}-{random.integers(1, 29):02}",
                "vip": "yes" if random.random() < 0.2 else "no",
                "team": team,
            }
        )
    return rows


def logged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with three teams that were shown at random, and whether that solved it."""
    random, log = np.random.default_rng(1), []
    for row in rows:
        shown = random.permutation(TEAMS)[:3].tolist()
        rest = {name: value for name, value in row.items() if name != "team"}
        log.append(rest | {"labels": ";".join(shown), "solved": row["team"] in shown})
    return log


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        sheet = csv.DictWriter(file, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)
    return path


def features(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in FEATURES}


def hits(learner: Any, rows: list[dict[str, Any]]) -> float:
    """How often the right team is among the three best."""
    best = learner.predict_set([features(row) for row in rows], 3)
    return float(np.mean([row["team"] in shown for row, shown in zip(rows, best, strict=True)]))


def new() -> Any:
    return sa.SetLogit(labels=TEAMS, set_size=3)


def from_log(source: Any) -> Any:
    log = Log(source, columns=LogColumns(hit="solved"), uniform=True)
    learner, summary = new(), summarize(log, labels=TEAMS)
    train(log, learner, summary, holdout=0.0)
    return learner


def from_dicts(log: list[dict[str, Any]]) -> Any:
    learner = new()
    for row in log:
        learner.update(sa.Decision.given(features(row), row["labels"].split(";")), hit=row["solved"])
    return learner


def from_sklearn(log: list[dict[str, Any]]) -> Any:
    frame = pd.DataFrame(log)
    model = SetFeedbackClassifier(set_size=3, random_state=0)
    shown = [labels.split(";") for labels in frame["labels"]]
    model.partial_fit(frame[FEATURES], frame["solved"], shown=shown, classes=TEAMS)
    return model


def from_service(rows: list[dict[str, Any]], folder: Path, columns: Any = None) -> Any:
    journal = folder / f"{'open' if columns is None else 'declared'}.db"
    service = Service.open(journal, labels=TEAMS, set_size=3, columns=columns)
    for row in rows:
        shown = service.call(DecisionRequest(features(row)))
        outcome = OutcomeRequest(shown.id, row["team"] in shown.labels)
        service.call(outcome)
    learner = service.model.projector.learner
    service.close()
    return learner


def from_stream(path: Path, rounds: int) -> Any:
    learner = new()
    sa.simulate(learner, Arrays(**read_data(path, label="team", kinds={"ticket": "left out"})), rounds)
    return learner


def noise(path: str) -> None:
    frame = pd.read_csv(path)[["text", "intent"]]
    random = np.random.default_rng(0)
    noisy = frame.assign(**{f"n{i}": random.normal(size=len(frame)) for i in range(10)})
    for name, learner in (("told", sa.AveragedSoftmax), ("rank, m = 5", sa.SetLogit)):
        more = {} if learner is sa.AveragedSoftmax else {"set_size": 5, "explore": "rank"}
        errors = []
        for one in (frame, noisy):
            stream = from_frame(one, label="intent")
            errors.append(sa.simulate(learner(labels=stream.labels, **more), stream, len(one)).error_rate)
        print(
            f"{name}: {errors[0]:.4f} alone, {errors[1]:.4f} beside noise ({errors[1] / errors[0] - 1:+.1%})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--noise", metavar="FILE", help="banking77.csv")
    given = parser.parse_args()
    if given.noise:
        noise(given.noise)
        return
    rows, later = tickets(given.rows, 0), tickets(2000, 1)
    log = logged(rows)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table, path = write(folder / "tickets.csv", rows), write(folder / "log.csv", log)
        trained = from_log(path)
        print("columns:", trained.columns.descriptions, "left out:", trained.columns.left_out)
        ways_in = {
            "train": lambda: trained,
            "frame": lambda: from_log(pd.DataFrame(log)),
            "dicts": lambda: from_dicts(log),
            "sklearn": lambda: from_sklearn(log),
            "service": lambda: from_service(rows, folder),
            "declared": lambda: from_service(rows, folder, trained.columns),
            "simulate": lambda: from_stream(table, given.rows),
        }
        for name, way_in in ways_in.items():
            learner = way_in()
            held = learner if name != "sklearn" else learner.learner_
            print(f"{name:10} {hits(held, later):.4f}", flush=True)


if __name__ == "__main__":
    main()
