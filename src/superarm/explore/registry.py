"""Rules by the names that records, logs and spec files use, and the distribution behind a recorded decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from superarm.data.labels import Label
from superarm.decisions import Decision
from superarm.errors import InvalidInput
from superarm.explore.distributions import SetDistribution
from superarm.explore.rule import Rule
from superarm.parameters import subclasses


def rules() -> dict[str, type[Rule]]:
    """Return all rule classes that have been imported, by name; of two with one name, the later one."""
    every = subclasses(Rule)  # type: ignore[type-abstract]
    return {cls.name: cls for cls in every if "name" in vars(cls)}


def rule_from(data: dict[str, Any], owner: str) -> Rule:
    """Return the rule that `Rule.to_dict` gave as ``data``; ``owner`` is whose it is, for messages."""
    known = rules()
    params = {key: value for key, value in data.items() if key != "name"}
    if data.get("name") not in known:
        raise InvalidInput.must(
            "explore", owner, f"a rule, one of {', '.join(sorted(known))}", data.get("name")
        )
    try:
        return known[data["name"]](**params)
    except TypeError as error:
        raise InvalidInput.must("explore", owner, "a rule with its own parameters", data) from error


def distribution_of(decision: Decision, labels: Sequence[Label] | None = None) -> SetDistribution | None:
    """Return the distribution that a decision was drawn from; ``None`` where its rule was not recorded.

    Args:
        decision: what a learner or a rule decided, or a log holds.
        labels: all labels; a decision that was stored has only those it names.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(n_labels=4, n_features=2, set_size=2)
    >>> decision = learner.decide([1.0, 0.0])
    >>> distribution = distribution_of(decision)
    >>> round(distribution.probability(decision.labels), 6) == round(decision.propensity, 6)
    True
    """
    record = decision.rule
    if record is None or record["name"] not in rules():
        return None
    eligible = decision.candidates if labels is None or decision.eligible is not None else labels
    if eligible is None:
        return None
    return rules()[record["name"]].distribution_from(record, decision.top, eligible, decision.set_size)
