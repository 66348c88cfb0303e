"""Commands without data: theory and bench."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from superarm.cli.options import AsJson
from superarm.cli.output import print_json, print_note, print_table


def theory(
    labels: Annotated[int, Option(help="How many labels there are, k.")],
    set_size: Annotated[int, Option(help="How many are shown, m.")],
    gamma: Annotated[float, Option(help="The share of exploration, in (0, 1].")] = 0.1,
    rounds: Annotated[int, Option(help="How many rounds, T.", min=1)] = 1_000_000,
    complexity: Annotated[float, Option(help="D = 2 |W*|², for the bound.")] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Probabilities, exact variances and the paper's bounds for one problem.

    Example: **superarm theory --labels 10 --set-size 3 --gamma 0.1 --rounds 1000000**
    """
    from superarm.theory import summary

    result = summary(labels, set_size, gamma, rounds, complexity=complexity)
    if as_json:
        print_json(result)
        return
    print_table(
        f"Sets of m = {set_size} out of k = {labels} labels, γ = {gamma:g}",
        ["what the paper's draw shows", ""],
        [
            ["a label of the top set is shown with probability", f"{result.shown_inside:.4f}"],
            ["a label outside of it", f"{result.shown_outside:.4f}"],
            ["the shown set differs from the top set", f"{result.other_set:.4f}"],
            ["labels from outside in a shown set, on average", f"{result.mean_outside:.4f}"],
        ],
    )
    print()
    print_table(
        "Second moment E‖Ũ‖² of one update, ‖x‖ = 1: exact, next to Lemma 5",
        ["estimate", "label in the top set", "label outside"],
        [
            *(
                [name, f"{inside:,.2f}", f"{outside:,.2f}"]
                for name, (inside, outside) in result.second_moments.items()
            ),
            ["bound of Lemma 5 (ordered)", f"{result.lemma5[0]:,.0f}", f"{result.lemma5[1]:,.0f}"],
        ],
    )
    print()
    says_nothing = (
        [["… which says nothing: it is above the number of rounds", ""]] if result.bound >= rounds else []
    )
    print_table(
        f"Theorem 6 for T = {rounds:,} rounds, D = {complexity:g}, a separating W* (R_T = 0)",
        ["", ""],
        [
            ["misses of the top set at most", f"{result.bound:,.0f}"],
            *says_nothing,
            ["the γ that makes the bound least (Corollary 8, corrected)", f"{result.best_gamma:.4f}"],
        ],
    )


def bench(as_json: AsJson = False) -> None:
    """Measure this machine, next to plain NumPy and SciPy loops.

    Example: **superarm bench**
    """
    from superarm import bench as measurements
    from superarm._extras import require_extra

    require_extra("logs")  # for SciPy's rows, beside ours
    if not as_json:
        print_note("measuring, about 10 seconds …")
    results = measurements.measure()
    if as_json:
        print_json({"speed": [r._asdict() for r in results]})
        return
    print_table(
        "One thread; best of several repeats",
        ["work", "µs a round", "rounds/s", "× naive"],
        [
            [r.what, f"{r.microseconds:.2f}", f"{1e6 / r.microseconds:,.0f}", f"{r.ratio:.1f}"]
            for r in results
        ],
    )
