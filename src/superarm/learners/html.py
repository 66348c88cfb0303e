"""A learner as HTML, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from superarm._html import Markup, first_few, key_value_table

if TYPE_CHECKING:
    from superarm.learners.base import LearnerBase


def learner_html(learner: LearnerBase) -> Markup:
    """Return a table of its labels, rows, rounds and parameters."""
    most = "at most " if learner.inputs.sizes_vary else ""
    sizes = ("n_labels", "labels", "n_features", "set_size")
    labels = first_few(learner.vocabulary.all())
    pairs = [
        ("shows", f"{most}{learner.set_size} of {learner.n_labels:,} labels: {labels}"),
        ("rows", _describe_rows(learner)),
        ("rounds", f"{learner.round:,} decided, {learner.answered.count:,} answered"),
    ]
    for training in learner.metadata.get("training", ()):
        files = first_few([*training["logs"].values()])
        pairs.append(("trained", f"on {training['rows']:,} rows of {files}, {training['passes']} times"))
    pairs += [(name, repr(value)) for name, value in learner.nondefault_params.items() if name not in sizes]
    return key_value_table(type(learner).__name__, pairs)


def _describe_rows(learner: LearnerBase) -> str:
    if learner.columns is not None:
        kinds = [f"{name} ({kind})" for name, kind in learner.columns.descriptions.items()]
        more = ", and more names as they come" if learner.columns.is_open else ""
        return f"with names: {first_few(kinds)}{more}" if kinds else "with names, all of them words"
    if learner.n_features is None:
        return "the first one will tell"
    if isinstance(learner.n_features, tuple):
        return "{:,} dense and {:,} sparse features".format(*learner.n_features)
    layout = learner.inputs.layout
    return f"{learner.n_features:,} {'' if layout is None else layout.kind + ' '}features"
