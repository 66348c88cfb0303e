"""How a learner is shown: as text, and as HTML in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superarm._html import Markup, first_few, key_value_table
from superarm.parameters import parameters

if TYPE_CHECKING:
    from superarm.learners.learner import Learner


def nondefault_params(learner: Learner) -> dict[str, Any]:
    """Return the parameters that are not the default ones."""
    defaults = parameters(type(learner)) | {"set_size": learner.inputs.default_set_size}
    values = {name: learner.parameter_value(name) for name in defaults}
    own = {name: value for name, value in values.items() if not _is_default(value, defaults[name])}
    if learner.labels is not None:
        own.pop("n_labels", None)
    return own


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a parameter need not be shown; 1.0 is not True."""
    return value is None or (value == default and isinstance(value, bool) == isinstance(default, bool))


def learner_text(learner: Learner) -> str:
    """Return the call that would make such a learner."""
    texts = {name: repr(value) for name, value in learner.nondefault_params.items()}
    names = learner.labels
    if names is not None and len(names) > 6:
        texts["labels"] = f"{repr(list(names[:3]))[:-1]}, … {names[-1]!r}]"
    elif names is not None:
        texts["labels"] = repr(list(names))
    return f"{learner.owner}({', '.join(f'{name}={text}' for name, text in texts.items())})"


def learner_html(learner: Learner) -> Markup:
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


def _describe_rows(learner: Learner) -> str:
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
