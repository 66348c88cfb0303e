"""A shortlist for triage, where the answer comes days later, or never.

At the door a nurse sees three of eight departments. Which one was right is known only when the patient
leaves, 1 to 9 days later; of one in ten nothing is heard again. Decisions wait in a file. Every evening
the process ends, and goes on the next morning from its files: nothing is lost, and nothing counts twice.

    python examples/triage.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

import superarm as sa

DEPARTMENTS = [
    "cardiology",
    "dermatology",
    "ENT",
    "neurology",
    "oncology",
    "paediatrics",
    "surgery",
    "urology",
]
DAYS, PATIENTS, FEATURES, SHORTLIST = 60, 150, 12, 3


def morning(folder: Path) -> tuple[sa.Learner, dict[str, dict]]:
    """The model and the open decisions, from their files."""
    if not (folder / "model.npz").exists():
        made = sa.SetLogit(labels=DEPARTMENTS, n_features=FEATURES, set_size=SHORTLIST, seed=0)
        return made, {}
    return sa.load(folder / "model.npz"), json.loads((folder / "open.json").read_text())


def evening(folder: Path, learner: sa.Learner, waiting: dict[str, dict]) -> None:
    (folder / "open.json").write_text(json.dumps(waiting))
    learner.save(folder / "model.npz")


def main() -> None:
    random = np.random.default_rng(3)
    typical = random.normal(size=(len(DEPARTMENTS), FEATURES))
    discharges: dict[int, list[tuple[str, str]]] = {}  # what the hospital will know, and on which day
    folder = Path(tempfile.mkdtemp())
    right: list[bool] = []
    for day in range(DAYS):
        learner, waiting = morning(folder)
        for number in range(PATIENTS):
            truth = int(random.integers(len(DEPARTMENTS)))
            symptoms = typical[truth] + random.normal(size=FEATURES)
            decision = learner.decide(symptoms)
            waiting[f"{day}-{number}"] = decision.to_dict()
            right.append(DEPARTMENTS[truth] in decision.labels)
            if random.random() < 0.9:
                leaves = day + int(random.integers(1, 10))
                discharges.setdefault(leaves, []).append((f"{day}-{number}", DEPARTMENTS[truth]))
        for patient, department in discharges.pop(day, []):
            decision = sa.Decision.from_dict(waiting.pop(patient))
            learner.update(decision, hit=department in decision.labels)
        evening(folder, learner, waiting)
        if day + 1 in (5, 10, 20, 40, 60):
            week = np.mean(right[-5 * PATIENTS :])
            print(
                f"day {day + 1:>2}: the shortlist held the right department for {week:.0%} of the last 5 days"
            )
    print(
        f"{len(waiting):,} of {DAYS * PATIENTS:,} decisions are still open; a shortlist at random holds 38%"
    )
    size = (folder / "model.npz").stat().st_size
    print(f"the model: {learner.round:,} decisions, answered or not, in {size:,} bytes")


if __name__ == "__main__":
    main()
