"""A new journal is given its learner, once; all later starts must agree with it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from superarm.learners import load
from superarm.learners.registry import make
from superarm.service.core.faults import JournalForeign
from superarm.service.core.journal import Journal
from superarm.service.core.replay import model_bytes
from superarm.service.core.stats import Stats

__all__ = ["check", "found"]


def check(journal: Journal, meta: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to use a journal for something else than it was made for."""
    for name, value in asked.items():
        if value is not None and (list(value) if name == "labels" else value) != meta[name]:
            wanted = f"left out or {meta[name]!r}, which {journal.path} was made for"
            raise JournalForeign.must(name, "superarm serve", wanted, value)


def found(journal: Journal, asked: dict[str, Any], model: str | Path | None) -> None:
    """Give a new journal its learner."""
    if model is not None:
        learner = load(model)
        spec = asked["learner"] or learner.name
        for name in ("labels", "n_features", "set_size", "seed"):
            has = getattr(learner, name)
            if asked[name] is not None and (tuple(asked[name]) if name == "labels" else asked[name]) != has:
                raise JournalForeign.must(
                    name, "superarm serve", f"left out or {has!r}, which {model} has", asked[name]
                )
    else:
        for name, option in (("labels", "--labels"), ("n_features", "--features")):
            if asked[name] is None:
                raise JournalForeign.must(option, "superarm serve", "given for a new journal", None)
        spec = asked["learner"] or "set-logit"
        common = {
            "labels": list(asked["labels"]),
            "n_features": asked["n_features"],
            "seed": asked["seed"] or 0,
        }
        if asked["set_size"] is not None:
            common["set_size"] = asked["set_size"]
        learner = make(spec, **common)
    if learner.labels is None or not all(isinstance(label, str) for label in learner.labels):
        raise JournalForeign.must("labels", "superarm serve", "names (strings)", learner.labels)
    meta = {name: getattr(learner, name) for name in ("labels", "n_features", "set_size", "seed")}
    journal.put_meta({"learner": spec, "id": learner.id, "made": time.time(), **meta})
    journal.put_snapshot(model_bytes(learner), Stats(learner.labels).to_dict())
    journal.commit()
