"""Decisions that were stored, as a learner takes them back."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from superarm.decisions import Decision
from superarm.learners.learner import Learner

__all__ = ["Restorer", "is_answered"]


def is_answered(learner: Learner, decision: Decision) -> bool:
    """Whether it has learnt from this decision of its own."""
    return decision.round is not None and decision.round in learner.answered


class Restorer:
    """Many stored decisions of one learner, in the form in which it learns from them.

    The same as `Decision.from_dict`, and the same bits when they are learnt; but labels become numbers here, by one
    look each. It holds as long as the learner has these labels.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner, self.known = learner, learner.known
        self._number = {label: number for number, label in enumerate(learner.known.all())}

    def fits(self, learner: Learner) -> bool:
        return learner is self.learner and learner.known is self.known

    def decision(self, data: dict[str, Any], x: Any) -> Decision:
        """What `Decision.to_dict` of this learner gave, with its row."""
        learner, layout, number = self.learner, self.learner.inputs.layout, self._number
        dense = (
            type(x) is np.ndarray
            and layout is not None
            and (len(x), 0, 0) == layout
            and learner.columns is None
        )
        if dense:
            try:
                shown, drawn, top = data["labels"], data["drawn"], data["top"]
                eligible, odds, ordered = (
                    data["eligible"],
                    data["log_propensity"],
                    data["log_ordered_propensity"],
                )
                if set(shown) == set(drawn) and len(shown) == len(drawn) == len(set(drawn)) == len(top):
                    return Decision.made(
                        x=x,
                        row=x,
                        sets=np.array([number[label] for part in (shown, drawn, top) for label in part]),
                        size=len(shown),
                        eligible=None if eligible is None else np.sort([number[label] for label in eligible]),
                        log_ordered=nan if ordered is None else ordered,
                        log_set=nan if odds is None else odds,
                        belief=data["belief"],
                        rule=data["rule"],
                        draw_log=np.array(learner.rule.moves(data["rule"]), np.float64).tobytes(),
                        round=data["round"],
                        learner=learner.id,
                        known=self.known,
                    )
            except (KeyError, TypeError, ValueError):  # `from_dict` says what is wrong
                pass
        return Decision.from_dict({**data, "x": None, "learner": learner.id}, x=x)
