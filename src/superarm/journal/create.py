"""The learner of a new journal; all later starts must agree with it.

It may be in a user's own file (``file.py:Class``), and so may its rule: such code is run only where the user names it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path
from typing import Any

from superarm._types import JsonObject
from superarm.data.columns import Columns
from superarm.data.labels import LabelVocabulary, check_single_lines
from superarm.errors import InvalidInput, Unquoted
from superarm.explore.cover import check_coverage
from superarm.journal.errors import JournalMismatch
from superarm.journal.snapshots import made_by, model_bytes
from superarm.journal.store import Snapshot
from superarm.journal.totals import Totals
from superarm.learners import Learner, Scores, SetLogit, load
from superarm.learners.registry import import_user_code, make, names_user_code, parse
from superarm.parameters import check_int

OWNER = "superarm serve"  # for messages
# The default share of uniform sets of SetLogit and Scores. It costs
# DEFAULT_UNIFORM (1 - m/k) shown misses, and makes a log worth having: docs/evaluation.md, benchmarks/uniform_share.py
DEFAULT_UNIFORM = 0.02
MAX_SHOWN = 200  # characters of an option in a message
OVERRIDE_DEFAULT_UNIFORM = {"explore", "uniform", "coverage"}  # parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOptions:
    """What a journal is made for, as far as the caller says so; see `Service.open`."""

    learner: str | None = None
    labels: Sequence[str] | None = None
    n_features: int | None = None
    set_size: int | None = None
    coverage: float | None = None
    seed: int | None = None
    columns: JsonObject | None = None
    group: str | None = None

    @classmethod
    def parse(cls, labels: Any = None, columns: Any = None, **options: Any) -> JournalOptions:
        """Return options from fields by name, checked; the columns may be in a file."""
        names = LabelVocabulary.from_params(None, labels, OWNER).names if labels is not None else None
        if not all(isinstance(name, str) for name in names or ()):
            raise InvalidInput.must("labels", OWNER, "a list of names", labels)
        for name in ("learner", "group"):
            if not isinstance(options.get(name), str | None):
                raise InvalidInput.must(name, OWNER, "a text", options[name])
        for name, least in {"set_size": 1, "seed": 0}.items():
            if options.get(name) is not None:
                check_int(name, OWNER, options[name], least)
        if options.get("coverage") is not None:
            check_coverage(options["coverage"], OWNER)
        declared = None if columns is None else Columns.read(columns).to_dict()
        return cls(labels=None if names is None else list(names), columns=declared, **options)

    def given(self) -> JsonObject:
        """Return the options that are not None."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}


def check_same_options(source: object, meta: JsonObject, options: JournalOptions) -> None:
    """Refuse to use a journal for something else than it was made for."""
    given = options.given()
    spec = given.get("learner")
    # the file of a learner of one's own may have moved
    if spec is not None and names_user_code(spec) and names_user_code(meta["learner"]):
        given["learner"] = f"{meta['learner'].partition(':')[0]}:{spec.partition(':')[2]}"
    _check_same(source, meta, given)


def _check_same(source: object, expected: JsonObject, given: JsonObject) -> None:
    for name, value in given.items():
        value, saved = list(value) if isinstance(value, tuple) else value, expected.get(name)
        if value == saved:
            continue
        shown = repr(saved) if len(repr(saved)) <= MAX_SHOWN else f"{repr(saved)[:MAX_SHOWN]}…"
        if isinstance(saved, list) and isinstance(value, list):
            number = next(i for i, (old, new) in enumerate(zip_longest(saved, value), 1) if old != new)
            shown = f"the {len(saved):,} {name} (number {number:,} is {_nth(saved, number)})"
            value = Unquoted(f"{len(value):,} (number {number:,} is {_nth(value, number)})")
        raise JournalMismatch.must(name, OWNER, f"left out or {shown}, which {source} was made for", value)


def _nth(labels: list[str], number: int) -> str:
    return repr(labels[number - 1]) if number <= len(labels) else "none"


def new_journal(options: JournalOptions, model: str | Path | None) -> tuple[JsonObject, Snapshot]:
    """Return the meta and the first snapshot of a new journal."""
    check_single_lines(options.labels or (), OWNER)
    learner = new_learner(options) if model is None else _from_model(options, model)
    now, fixed = time.time(), _fixed_by(learner)
    meta = {
        "kind": "service",
        "learner": options.learner or learner.name,
        "id": learner.id,
        "made": now,
        **fixed,
    }
    meta |= {"columns": options.columns, "group": options.group}
    return meta, Snapshot(0, now, {"model": model_bytes(learner)}, Totals().to_dict(), made_by())


def _fixed_by(learner: Learner) -> JsonObject:
    """Return the options of a journal that its learner fixes."""
    fixed = {name: getattr(learner, name) for name in ("n_features", "set_size", "seed")}
    promised = None if learner.coverage is None else learner.coverage.promised
    return {"labels": list(learner.vocabulary.all()), **fixed, "coverage": promised}


def _from_model(options: JournalOptions, model: str | Path) -> Learner:
    """Return the learner of a model file, with the labels, the sizes and the share of uniform sets of a journal."""
    if options.learner is not None:
        import_user_code(options.learner)  # before they can be loaded
    learner = load(model)
    labels = learner.vocabulary.all()
    if not all(isinstance(label, str) for label in labels):  # JSON and journals have names: 3 becomes "3"
        learner = learner.with_params(labels=[str(label) for label in labels])
    if options.columns is not None:
        raise InvalidInput.must("columns", OWNER, f"left out: {model} has its own", Unquoted("a file"))
    learner = _with_sizes(learner, options)
    fixed = _fixed_by(learner)
    _check_same(model, fixed, {name: value for name, value in options.given().items() if name in fixed})
    spec = options.learner or learner.name
    cls, params = parse(spec)
    if type(learner) is not cls:
        wanted = f"the class in {model}, {type(learner).__name__}"
        raise InvalidInput.must("learner", OWNER, wanted, spec)
    _check_same(model, params | learner.params, import_user_code(spec))
    if _has_default_uniform(cls, learner.nondefault_params | params):
        learner = learner.with_params(uniform=DEFAULT_UNIFORM)
    return learner


def _with_sizes(learner: Learner, options: JournalOptions) -> Learner:
    """Return a learner that shows as many labels as the options say, or that promises their coverage."""
    promised = None if learner.coverage is None else learner.coverage.promised
    if options.coverage is not None and options.coverage != promised:  # a new promise, kept from now on
        return learner.with_new_rule(coverage=options.coverage, set_size=options.set_size)
    if options.set_size is not None and options.set_size != learner.set_size:
        return learner.with_params(set_size=options.set_size)
    return learner


def new_learner(options: JournalOptions) -> Learner:
    """Return the learner of a new journal that is made without a model; options that it cannot have are refused."""
    if options.labels is None:
        raise InvalidInput("superarm serve needs --labels for a new journal")
    spec, given = options.learner or "set-logit", options.given()
    params: JsonObject = {name: given[name] for name in ("set_size", "coverage") if name in given}
    params |= {"labels": list(options.labels), "n_features": options.n_features, "seed": options.seed or 0}
    cls, spec_params = parse(spec)
    if _has_default_uniform(cls, spec_params | params):
        params["uniform"] = DEFAULT_UNIFORM
    learner = make(spec, **params)
    if options.columns is not None:
        learner.use_columns(options.columns)
    return learner


def _has_default_uniform(cls: type[Learner], given: JsonObject) -> bool:
    """Return whether a learner draws `DEFAULT_UNIFORM`: if no parameter that was given says how it explores."""
    return issubclass(cls, SetLogit | Scores) and not OVERRIDE_DEFAULT_UNIFORM & given.keys()


# ---------------------------------------------------------------- learners in a user's own file


def check_is_service_journal(meta: JsonObject) -> None:
    """Refuse a journal that is not a service's."""
    if meta["kind"] != "service":
        got = Unquoted(f"that of a {meta['kind']}")
        raise JournalMismatch.must(
            "journal", "superarm", "that of a service (superarm labels reads others)", got
        )


def import_user_learner(meta: JsonObject, learner: str | None) -> None:
    """Import the learner of a journal, if it is in a user's own file, and only if the user names it."""
    check_is_service_journal(meta)
    spec = str(meta["learner"])
    if names_user_code(spec):
        if learner is None:
            wanted = f"given: it is in a file ({spec}), and code is only run if you name its file"
            raise InvalidInput.must("--learner", "superarm", wanted, None)
        import_user_code(learner)
