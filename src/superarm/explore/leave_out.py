"""Leaving out ranks: what RunnerUp and Cover record of a draw, and the distribution behind such a record.

native/leave_out.pyx draws: of the ranks of the top set some are left out by one uniform u, and the next ranks, if
there are any, fill up; tied labels take each other's places.

The record has ``sums``, the running sums of the probabilities with which ranks are left out; ``next``, the labels that
fill up; and where labels are tied, ``groups``, how many ranks each group of ties has, and the labels behind the ranks
that are ``tied`` with the last rank, or if fewer are not, the ``untied`` ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

from superarm.data.labels import Label, LabelVocabulary
from superarm.explore.distributions import Mixture, SetDistribution

LABEL_KEYS = ("next", "tied", "untied")  # entries of the record that are lists of labels


def leave_out_record(draw_log: list[float], labels: LabelVocabulary) -> dict[str, Any]:
    """Return the record of what `LeaveOutKernel.write_log` wrote; ``labels`` are those that could be shown."""
    record: dict[str, Any] = {}
    start = 0
    for key in ("sums", "next", "groups"):
        end = start + 1 + int(draw_log[start])
        if part := draw_log[start + 1 : end]:
            record[key] = part
        start = end
    if "next" in record:
        record["next"] = labels.decode(record["next"])
    if "groups" in record:
        record["groups"] = [int(n_ranks) for n_ranks in record["groups"]]
        key = "tied" if draw_log[start] > 0.0 else "untied"
        record[key] = labels.decode(draw_log[start + 1 :])
    return record


def leave_out_distribution(
    record: dict[str, Any],
    top: Sequence[Label],
    eligible: Sequence[Label],
    sets: Iterable[tuple[Iterable[Label], float]] | None = None,
) -> SetDistribution:
    """Return the distribution behind a record.

    Args:
        record: what `leave_out_record` gave, and the share of ``uniform`` sets.
        top: the top set, best first.
        eligible: the labels that could be shown.
        sets: the sets for one order of tied labels, with their probabilities, if not by leaving out ranks.
    """
    next_ranks, m = record.get("next", ()), len(top)
    ranked = [*top, *next_ranks]
    if sets is None:
        sets = [
            ([label for rank, label in enumerate(ranked) if rank - 1 not in left_out][:m], probability)
            for left_out, probability in drawn_intervals(record.get("sums", ()), len(next_ranks) or 2)
        ]
    ties = _tied_labels(record, ranked, eligible) if "groups" in record else ()
    return Mixture(eligible, m, sets, dilute_share=record["uniform"], ties=ties)


def drawn_intervals(sums: Sequence[float], n_points: int) -> list[tuple[list[int], float]]:
    """Return which of the intervals between ``sums`` hold u, and with two points u + 1, too.

    Returns:
        For each stretch of u that is in the same intervals: their numbers, and the probability of the stretch.
    """
    edges = [0.0, *sums]
    cuts = sorted({0.0, 1.0, *(c - j for c in edges for j in range(n_points) if 0.0 < c - j < 1.0)})
    stretches = []
    for low, high in pairwise(cuts):
        u = (low + high) / 2
        numbers = [bisect_right(edges, u + j) - 1 for j in range(n_points)]
        stretches.append(([i for i in numbers if i < len(sums)], high - low))
    return stretches


def _tied_labels(
    record: dict[str, Any], ranked: Sequence[Label], eligible: Sequence[Label]
) -> list[list[Label]]:
    """Return the labels of each group of ties, in the order of the ranks."""
    if "tied" in record:
        behind_ranked = record["tied"]
    else:
        others = {*ranked, *record["untied"]}
        behind_ranked = [label for label in eligible if label not in others]
    ranks = iter(ranked)
    groups = [list(islice(ranks, n_ranks)) for n_ranks in record["groups"]]
    groups[-1] += behind_ranked
    return groups
