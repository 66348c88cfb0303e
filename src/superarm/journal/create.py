"""The learner of a new journal; all later starts must agree with it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from superarm.journal.errors import JournalForeign
from superarm.journal.snapshots import is_own_class, made_by, model_bytes
from superarm.journal.store import Snapshot
from superarm.journal.totals import Totals
from superarm.learners import Learner, Scores, SetLogit, load
from superarm.learners.registry import make, parse

# The default share of uniform sets of SetLogit and Scores. It costs
# UNIFORM (1 - m/k) shown misses, and makes a log worth having: docs/evaluation.md, benchmarks/uniform_share.py
UNIFORM = 0.02
EXPLORES = {"explore", "uniform", "coverage"}  # parameters that say something else


def check_same_purpose(where: object, meta: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to use a journal, or a model, for something else than it was made for."""
    for name, value in asked.items():
        if value is None:
            continue
        is_, was = (list(one) if isinstance(one, tuple) else one for one in (value, meta.get(name)))
        if name == "learner" and is_own_class(value) and is_own_class(meta[name]):  # the file may have moved
            is_, was = value.partition(":")[2], meta[name].partition(":")[2]
        if is_ != was:
            wanted = f"left out or {meta.get(name)!r}, which {where} was made for"
            raise JournalForeign.must(name, "superarm serve", wanted, value)


def new_journal(asked: dict[str, Any], model: str | Path | None) -> tuple[dict[str, Any], Snapshot]:
    """The meta and the first snapshot of a new journal."""
    learner, spec = _from_model(asked, model) if model is not None else _from_options(asked)
    now, purpose = time.time(), _purpose_of(learner)
    meta = {"kind": "service", "learner": spec, "id": learner.id, "made": now, **purpose}
    meta |= {"columns": asked["columns"], "group": asked["group"]}
    totals = Totals.of(purpose["labels"]).to_dict()
    return meta, Snapshot(0, now, {"model": model_bytes(learner)}, totals, made_by())


def _purpose_of(learner: Learner) -> dict[str, Any]:
    """What a journal with this learner is for."""
    purpose = {name: getattr(learner, name) for name in ("n_features", "set_size", "seed")}
    promised = None if learner.coverage is None else learner.coverage.promised
    return {"labels": list(learner.label_set.all()), **purpose, "coverage": promised}


def _from_model(asked: dict[str, Any], model: str | Path) -> tuple[Learner, str]:
    if asked["learner"] is not None:
        parse(asked["learner"])  # a class of the user's own must be imported before it can be loaded
    learner = load(model)
    labels = learner.label_set.all()
    if not all(isinstance(label, str) for label in labels):  # JSON and journals have names: 3 becomes "3"
        learner = learner.with_params(labels=[str(label) for label in labels])
    if asked["columns"] is not None:
        raise JournalForeign.must("--columns", "superarm serve", f"left out: {model} has its own", "a file")
    purpose = _purpose_of(learner)
    check_same_purpose(model, purpose, {name: asked[name] for name in purpose})
    spec = asked["learner"] or learner.name
    cls, params = parse(spec)
    if type(learner) is not cls:
        wanted = f"the class in {model}, {type(learner).__name__}"
        raise JournalForeign.must("--learner", "superarm serve", wanted, spec)
    check_same_purpose(model, params | learner.params, params)
    chosen = learner.nondefault_params | params
    if isinstance(learner, SetLogit | Scores) and not chosen.keys() & EXPLORES:
        learner = learner.with_params(uniform=UNIFORM)
    return learner, spec


def _from_options(asked: dict[str, Any]) -> tuple[Learner, str]:
    if asked["labels"] is None:
        raise JournalForeign.must("--labels", "superarm serve", "given for a new journal", None)
    spec = asked["learner"] or "set-logit"
    common = {"labels": list(asked["labels"]), "n_features": asked["n_features"], "seed": asked["seed"] or 0}
    common |= {name: asked[name] for name in ("set_size", "coverage") if asked[name] is not None}
    cls, given = parse(spec)
    if issubclass(cls, SetLogit | Scores) and not (given | common).keys() & EXPLORES:
        common["uniform"] = UNIFORM
    learner = make(spec, **common)
    if asked["columns"] is not None:
        learner.use_columns(asked["columns"])
    return learner, spec
