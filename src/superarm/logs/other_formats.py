"""Logs of other tools, as rows of ours: Vowpal Wabbit's dsjson and Open Bandit Pipeline's bandit_feedback.

Both write down the probability of every action, so their sets can be weighted exactly: the rule "slots" draws
one label for each slot, each by its own probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from superarm._types import Array, Cell, Frame, JsonObject
from superarm.data.labels import Label
from superarm.data.tables import Table, file_table, json_rows, memory_table, open_table
from superarm.errors import InvalidInput, Unquoted
from superarm.explore import Mixture, Rule, SetDistribution
from superarm.logs.parsing import BadRow, LogRow, parse_number
from superarm.native.rule import RuleKernel

LogSource = str | PathLike[str] | Frame | dict[str, Any]  # a file, a table, or OBP's bandit_feedback


def open_source(source: LogSource) -> Table:
    """Open a log: a file, a pandas, Polars or Arrow table, or OBP's ``bandit_feedback``."""
    if isinstance(source, dict):
        return memory_table("bandit_feedback", lambda: from_obp(source))
    if isinstance(source, str | PathLike) and Path(source).suffix.lower() == ".dsjson":
        return file_table(Path(source), json_rows)
    return open_table(source)


# ---------------------------------------------------------------- Vowpal Wabbit


def convert_row(row: LogRow, where: str) -> LogRow:
    """Return a row of a log in superarm's format; one that is not VW's dsjson as it is."""
    if isinstance(row.get("c"), dict) and ("_label_cost" in row or "_outcomes" in row):
        return from_dsjson(row, where)
    if "DanglingReward" in row:
        wanted = "must be a decision, not a reward that came late (join them first, or skip such rows as bad)"
        raise BadRow(f"{where} {wanted}")
    return row


def from_dsjson(row: LogRow, where: str) -> LogRow:
    """Return a decision of one action, or a slate with one action for each slot. A cost of -1 is a hit.

    Labels are the actions' own names (``_tag``, or ``i.id``), or else their indices. Features
    are the shared ones, ``namespace.name`` each.
    """
    if row.get("pdrop"):
        raise BadRow(f"{where} must be without pdrop: rows that were dropped cannot be weighed")
    try:
        actions = row["c"]["_multi"]
        cost = _cost(row)
        names = [_action_name(action, i) for i, action in enumerate(actions)]
        slots = _slots(row, actions, names)
        labels = [labels[0] for labels, _ in slots]
        propensity = prod(probabilities[0] for _, probabilities in slots)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else f"{error}"
        wanted = "dsjson of a decision or a slate, with actions and probabilities"
        raise BadRow(f"{where} must be {wanted} ({why})") from error
    if cost not in (None, -1.0, 0.0):
        raise BadRow(f"{where} must be of cost -1 (a hit) or 0 (a miss), not {cost:g}")
    shared = {key: value for key, value in row["c"].items() if not key.startswith("_")}
    return {
        **_flat(shared),
        "id": row.get("EventId"),
        "time": row.get("Timestamp"),
        "labels": labels,
        "eligible": names,
        "propensity": propensity,
        "rule": slots_rule(*slots),
        "hit": None if cost is None else cost == -1.0,
    }


def _slots(
    row: LogRow, actions: list[JsonObject], names: list[Label]
) -> list[tuple[list[Label], list[float]]]:
    """Return the labels of each slot, the shown one first, and their probabilities."""
    if "_outcomes" not in row:
        order, probabilities = [int(a) for a in row["a"]], [float(p) for p in row["p"]]
        shown = order.index(int(row.get("_label_Action", order[0])))
        positions = [shown, *(i for i in range(len(order)) if i != shown)]
        return [([names[order[i] - 1] for i in positions], [probabilities[i] for i in positions])]
    slots = []
    for slot, outcome in enumerate(row["_outcomes"]):
        named = zip(names, actions, strict=True)
        own = [name for name, action in named if action.get("_slot_id") == slot]
        order = [int(a) for a in outcome["_a"]]
        if not order or max(order) >= len(own):
            raise ValueError(
                f"slot {slot} has {len(own)} actions, and shows that of index {max(order, default=0)}"
            )
        slots.append(([own[a] for a in order], [float(p) for p in outcome["_p"]]))
    return slots


def _cost(row: LogRow) -> float | None:
    """Return the cost of a decision, or of the first slot of a slate; ``None`` if there is none."""
    cost = row.get("_label_cost")
    if cost is None and "_outcomes" in row:
        cost = row["_outcomes"][0].get("_label_cost")
    return None if cost is None else float(cost)


def _action_name(action: JsonObject, i: int) -> Label:
    """Return the name of an action, or else its index ``i``."""
    inner = action.get("i")
    names = (action.get("_tag"), inner.get("id") if isinstance(inner, dict) else None)
    return next((name for name in names if name not in (None, "")), i)


def _flat(features: Cell, before: str = "") -> LogRow:
    """Return nested features by dotted names; lists by position."""
    if isinstance(features, dict):
        parts: list[Any] = list(features.items())
    elif isinstance(features, list):
        parts = list(enumerate(features))
    else:
        return {before: features}
    flat: LogRow = {}
    for key, value in parts:
        flat |= _flat(value, f"{before}.{key}" if before else str(key))
    return flat


# ---------------------------------------------------------------- Open Bandit Pipeline


def from_obp(feedback: dict[str, Any]) -> Iterator[LogRow | str]:
    """Return rows with one action each; ``pi_b``, where it is there, has the probabilities of all of them."""
    owner = "bandit_feedback"
    for needed in ("action", "reward", "context"):
        if feedback.get(needed) is None:
            keys = ", ".join(map(str, feedback))
            raise InvalidInput(f"{owner} has no {needed}, which Open Bandit Pipeline logs; it has {keys}")
    if "slate_id" in feedback:
        raise InvalidInput.must(
            "slate_id", owner, "left out: one action a round can be read", Unquoted("slates")
        )
    action, reward = np.asarray(feedback["action"]), np.asarray(feedback["reward"])
    context = np.asarray(feedback["context"], np.float64)
    pscore, probabilities = feedback.get("pscore"), feedback.get("pi_b")
    position = feedback.get("position")
    if not len(action) == len(reward) == len(context):
        got = [len(action), len(reward), len(context)]
        raise InvalidInput.must("action, reward and context", owner, "of one length", got)
    if probabilities is not None and position is not None:
        n_positions = np.asarray(probabilities).shape[2]
        if np.max(position, initial=0) >= n_positions:
            wanted = f"below {n_positions}, the positions of pi_b"
            raise InvalidInput.must("position", owner, wanted, int(np.max(position)))
    all_actions = list(range(int(feedback.get("n_actions") or action.max() + 1)))
    for i in range(len(action)):
        if parse_number(reward[i]) not in (0.0, 1.0):
            yield f"of reward 1 (a hit) or 0 (a miss), not {reward[i]}"
            continue
        slot = 0 if position is None else int(position[i])
        yield {
            "x": context[i],
            "labels": [int(action[i])],
            "eligible": all_actions,
            "propensity": None if pscore is None else float(pscore[i]),
            "rule": None
            if probabilities is None
            else slots_rule((all_actions, np.asarray(probabilities)[i, :, slot].tolist())),
            "hit": bool(reward[i]),
        }


# ---------------------------------------------------------------- slots


def slots_rule(*slots: tuple[Sequence[Label], Sequence[float]]) -> JsonObject:
    """Return the record of labels that were drawn slot by slot: (labels, probabilities) of each."""
    return {
        "name": Slots.name,
        "labels": [label for labels, _ in slots for label in labels],
        "probabilities": [p for _, probabilities in slots for p in probabilities],
        "slots": [i for i, (labels, _) in enumerate(slots) for _ in labels],
    }


class Slots(Rule):
    """How other tools draw a slate: one label for each slot. It describes logs, and chooses nothing itself."""

    name = "slots"
    label_keys = ("labels",)

    def make_kernel(self, k: int, seed: int) -> RuleKernel:
        raise InvalidInput.must(
            "rule", "superarm", "one that can choose sets: slots only describes logs", Unquoted("slots")
        )

    @classmethod
    def distribution_from(
        cls, record: JsonObject, top: Sequence[Label], eligible: Sequence[Label], m: int
    ) -> SetDistribution:
        slots: list[dict[Label, float]] = [{} for _ in range(max(record["slots"]) + 1)]
        for label, p, slot in zip(record["labels"], record["probabilities"], record["slots"], strict=True):
            slots[slot][label] = p
        if len(slots) == 1:
            return Mixture(eligible, 1, [([label], p) for label, p in slots[0].items()])
        return SlotsDistribution(eligible, slots)


class SlotsDistribution(SetDistribution):
    """One label for each slot, drawn independently; no label belongs to two slots."""

    def __init__(self, eligible: Sequence[Label], slots: list[dict[Label, float]]) -> None:
        super().__init__(eligible, len(slots))
        self.slots = slots

    def probability(self, labels: Iterable[Label]) -> float:
        shown = list(labels)
        by_slot = [[slot[label] for label in shown if label in slot] for slot in self.slots]
        if len(shown) != self.m or any(len(probabilities) != 1 for probabilities in by_slot):
            return 0.0
        return prod(probabilities[0] for probabilities in by_slot)

    def pair_inclusion(self) -> Array:
        by_slot = np.zeros((self.m, len(self.eligible)))
        for row, slot in zip(by_slot, self.slots, strict=True):
            row[self._positions(slot)] = list(slot.values())
        total = by_slot.sum(axis=0)
        both = np.outer(total, total) - by_slot.T @ by_slot  # two labels of one slot are never shown together
        np.fill_diagonal(both, total)
        return np.asarray(both)
