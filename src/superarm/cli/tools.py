"""Small commands: play, traffic, theory, bench."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Annotated

from typer import Argument, Option

from superarm.cli.options import AnyPort, AsJson, OpenPage
from superarm.cli.output import print_json, print_note, print_table, serve_page


def play(port: AnyPort = 0, browser: OpenPage = True) -> None:
    """Teach SetLogit to read digits, in the browser: say whether the digit is among three, or is not.

    Nothing leaves this machine, and nothing is kept. Ctrl-C ends it.

    Example: **superarm play**
    """
    from superarm.play.app import GameHandler
    from superarm.play.app import play as serve

    serve_page(partial(serve, GameHandler(), port), "Ctrl-C ends it.", browser=browser)


def traffic(
    url: Annotated[str, Argument(help="The service, as http://127.0.0.1:8800.")],
    data: Annotated[str, Option(help="A data set's name or an .npz file; its labels answer.")],
    decisions: Annotated[int, Option(help="How many decisions to ask for.", min=1)] = 10_000,
    users: Annotated[int, Option(help="How many users at once.", min=1)] = 8,
    delay: Annotated[float, Option(help="Mean seconds before an answer.", min=0)] = 0.5,
    lose: Annotated[float, Option(help="Share of decisions without an outcome.", min=0, max=1)] = 0.1,
    repeat: Annotated[float, Option(help="Share of requests that are sent twice.", min=0, max=1)] = 0.05,
    seed: Annotated[int, Option(help="The seed of rows, delays and losses.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Let simulated users ask a service for sets and answer them: late, twice, or never.

    A token is read from the environment variable SUPERARM_TOKEN.

    Example: **superarm traffic http://127.0.0.1:8800 --data digits --decisions 5000**
    """
    from superarm.service.client.traffic import UserBehaviour, simulate_users
    from superarm.streams import open_data

    stream = open_data(data)
    behaviour = UserBehaviour(users, mean_delay=delay, lost_share=lose, repeated_share=repeat, seed=seed)
    token = os.environ.get("SUPERARM_TOKEN")
    counts = simulate_users(url, stream, decisions, behaviour=behaviour, token=token, progress=not as_json)
    if as_json:
        print_json(counts)
    else:
        per_second = counts.decisions / counts.seconds if counts.seconds else 0.0
        print(f"{counts.decisions:,} decisions, {counts.repeats:,} of them sent twice")
        print(f"{counts.outcomes:,} outcomes; {counts.lost:,} decisions were never answered")
        print(f"hit rate {counts.hits / max(1, counts.decisions):.3f}, {per_second:,.0f} decisions/s")
    if counts.errors:
        print(f"superarm: {len(counts.errors)} users gave up: {counts.errors[0]}", file=sys.stderr)
        sys.exit(1)


def theory(
    labels: Annotated[int, Option(help="How many labels there are, k.")],
    set_size: Annotated[int, Option(help="How many are shown, m.")],
    gamma: Annotated[float, Option(help="The share of exploration, in (0, 1].")] = 0.1,
    rounds: Annotated[int, Option(help="How many rounds, T.", min=1)] = 1_000_000,
    complexity: Annotated[
        float | None,
        Option(help="D = 2 |W*|², for the bound; by default the least with which R_T = 0 is possible."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Probabilities, exact variances and the paper's bounds for one problem.

    Example: **superarm theory --labels 10 --set-size 3 --gamma 0.1 --rounds 1000000**
    """
    from superarm.theory import summary
    from superarm.theory.bounds import SUMMARY_RHO, least_complexity

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
                [
                    f"{name} (ρ = {SUMMARY_RHO:.4f})" if name == "minimum-variance" else name,
                    *(_short(moment, 2) for moment in moments),
                ]
                for name, moments in result.second_moments.items()
            ),
            ["bound of Lemma 5 (ordered)", *(_short(bound, 0) for bound in result.lemma5)],
        ],
    )
    print()
    least = least_complexity(labels, set_size)
    reason = None
    if set_size == 1:
        reason = "with m = 1 no W* has R_T = 0"
    elif result.complexity < least * (1.0 - 1e-4):  # a D that was copied from a title is not short
        reason = f"no W* of this D has R_T = 0; that takes {least:g}"
    elif result.bound >= rounds:
        reason = "it is above the number of rounds"
    says_nothing = [] if reason is None else [[f"… which says nothing: {reason}", ""]]
    print_table(
        f"Theorem 6 for T = {rounds:,} rounds, D = {result.complexity:g}, a separating W* (R_T = 0)",
        ["", ""],
        [
            ["misses of the top set at most", _short(result.bound, 0)],
            *says_nothing,
            ["the γ that makes the bound least (Corollary 8, corrected)", f"{result.best_gamma:.4f}"],
        ],
    )


def _short(number: float, decimals: int) -> str:
    """Return a number with all its digits, where these leave room for what is beside it."""
    return f"{number:,.{decimals}f}" if number < 1e12 else f"{number:.3g}"


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
