"""Reading an old log: what was shown last year, by a system that nobody has any more.

It is a CSV with columns of its own: who came, which three of six offers were shown, whether one was taken,
and how probable that slate was. From it come a model, and an answer to what that model would have done.

    python examples/old_log.py

The same on the command line:

    superarm train old.csv --labels-column slot1,slot2,slot3 --hit-column taken --propensity-column odds
    superarm evaluate old.csv --model model.npz --labels-column slot1,slot2,slot3 --hit-column taken \
        --propensity-column odds
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np

import superarm as sa
from superarm.explore.dilute_probabilities import log_set_probabilities
from superarm.logs import Log, LogColumns, Policy, evaluate, summarize, train

OFFERS = ["bike", "boat", "bus", "car", "plane", "train"]
COLUMNS = LogColumns(labels=("slot1", "slot2", "slot3"), hit="taken", propensity="odds")


def wants(x: np.ndarray, random: np.random.Generator) -> int:
    """What a customer would take."""
    angle = np.arctan2(x[1], x[0]) + 0.8 * random.normal()
    return int(angle % (2 * np.pi) / (2 * np.pi) * 6)


def write_old_log(path: Path, rows: int) -> None:
    """The old system liked bike, boat and bus, and tried others in 60 % of its draws."""
    random, gamma = np.random.default_rng(0), 0.6
    chance = np.exp(log_set_probabilities(6, 3, gamma))
    weight = gamma / 6 + (1 - gamma) / 3 * (np.arange(6) < 3)
    with path.open("w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(["customer", "east", "north", "slot1", "slot2", "slot3", "odds", "taken"])
        for number in range(rows):
            x = random.normal(size=2)
            slate = random.choice(6, 3, replace=False, p=weight)
            taken = int(wants(x, random) in slate)
            odds = chance[(slate < 3).sum()]
            offers = [OFFERS[i] for i in slate]
            sheet.writerow([f"c{number}", *x.round(4), *offers, odds, taken])


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    write_old_log(folder / "old.csv", 12_000)
    print((folder / "old.csv").read_text()[:190].rpartition("\n")[0])

    log = Log(folder / "old.csv", columns=COLUMNS)
    summary = summarize(log)
    share = summary.hits / summary.rows
    print(f"\n{summary.rows:,} slates; features: {', '.join(log.feature_columns.names)}; taken: {share:.1%}")

    model = sa.SetLogit(**summary.learner_params)
    result = train(log, model, summary, passes=3, holdout=0.4)
    last = result.history[-1]
    print(
        f"log loss on rows kept out: {last.log_loss:.3f} (knowing only the average: {result.base_loss:.3f})"
    )
    model.save(folder / "model.npz")

    answer = evaluate(
        log, [Policy("model", learner=model), Policy("rule", fixed=OFFERS[:3])], summary, holdout=0.4
    )
    print(f"judged by {answer.rows:,} rows: what was shown hit {answer.hit_rate:.3f}")
    for result in answer.results:
        best = result.best
        if best is None:
            print(f"{result.policy}: the log cannot say")
        else:
            print(f"{result.policy}: {best.value:.3f} [{best.low:.3f}, {best.high:.3f}] by {best.name}")

    random = np.random.default_rng(1)
    fresh = random.normal(size=(20_000, 2)).astype(np.float32)
    truth = [OFFERS[wants(x, random)] for x in fresh]
    hits = np.mean([t in s for t, s in zip(truth, model.predict_set(fresh), strict=True)])
    rule = np.mean(np.isin(truth, OFFERS[:3]))
    print(f"the truth, which no log knows: the model hits {hits:.3f}, the rule {rule:.3f}")


if __name__ == "__main__":
    main()
