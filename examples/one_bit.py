"""One bit as good as a label: the learners of the paper, SetLogit, and learners that are told every label.

    python examples/one_bit.py                          # embedded data: synsep and digits
    python examples/one_bit.py mnist.npz --rounds 200000 --set-size 4 --seeds 5

Every learner sees the same rows in the same order; bandit learners show one label, the others sets.
"""

from __future__ import annotations

import argparse
from statistics import mean, stdev

from joblib import Parallel, delayed

import superarm as sa
from superarm.simulation import Trace

# spec -> (what it is told, whether it shows one label only)
LEARNERS = {
    "softmax-averaged": ("the label", False),
    "softmax-averaged:curves=0": ("the label", False),
    "softmax:step=1": ("the label", False),
    "softmax:step=10": ("the label", False),
    "perceptron": ("the label", False),
    "mc-slp": ("the label", False),
    "set-logit:explore=rank": ("a bit on a set", False),
    "set-logit": ("a bit on a set", False),
    "set-logit:explore=show": ("a bit on a set", False),
    "set-logit:explore=rank,curves=0": ("a bit on a set", False),
    "mc-dbf:estimate=minimum-variance,gate=true": ("a bit on a set", False),
    "mc-dbf:estimate=minimum-variance": ("a bit on a set", False),
    "mc-dbf": ("a bit on a set", False),
    "soba-diag": ("a bit on a label", True),
    "banditron": ("a bit on a label", True),
}


def one(data: str, spec: str, set_size: int, rounds: int, seed: int) -> Trace:
    stream = sa.streams.open_data(data)
    learner = sa.make(
        spec,
        n_labels=stream.n_labels,
        n_features=stream.n_features,
        set_size=1 if LEARNERS[spec][1] else set_size,
        seed=seed,
    )
    return sa.simulate(learner, stream, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="*", default=["synsep", "digits"], help="names or .npz files")
    parser.add_argument("--set-size", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    for data in arguments.data:
        jobs = [(spec, seed) for spec in LEARNERS for seed in range(arguments.seeds)]
        traces = Parallel(n_jobs=-1)(
            delayed(one)(data, spec, arguments.set_size, arguments.rounds, seed) for spec, seed in jobs
        )
        print(f"\n**{traces[0].data}**, m = {arguments.set_size}, {arguments.rounds:,} rounds\n")
        print("| learner | is told | error | shown misses |")
        print("|---|---|---|---|")
        for spec, (told, _) in LEARNERS.items():
            own = [trace for (name, _), trace in zip(jobs, traces, strict=True) if name == spec]
            cells = []
            for rate in ("error_rate", "shown_miss_rate"):
                values = [getattr(trace, rate) for trace in own]
                spread = f" ± {stdev(values):.4f}" if len(values) > 1 else ""
                cells.append(f"{mean(values):.4f}{spread}")
            print(f"| `{spec}` | {told} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
