"""The summary of a log: its labels, its features, and how much is known about its sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from superarm._types import JsonObject
from superarm.data.columns import Columns
from superarm.data.labels import Label, LabelVocabulary, check_ordered
from superarm.data.rows import Row
from superarm.errors import InvalidInput
from superarm.explore import rules
from superarm.learners import Learner
from superarm.learners.registry import make
from superarm.logs.log import Log
from superarm.logs.parsing import label_in_cell


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log holds.

    Attributes:
        rows, bad: how many can be used, and how many cannot.
        answered, hits: rows with an outcome, and those whose set held the right label.
        with_propensity, with_rule: rows that say how probable their set was, and how it was drawn.
        n_features: the length of a row, (dense, sparse) if it has both parts.
        labels: names; ``None`` if each label is its own index, 0..n_labels-1.
        n_labels: how many there are.
        set_size: the most common one.
        feature_columns: what they are, if its rows have names.
        labels_given: whether ``labels`` were given, in an order of their own, or were found in the log.
    """

    rows: int
    bad: int
    answered: int
    hits: int
    with_propensity: int
    with_rule: int
    n_features: int | tuple[int, int]
    labels: tuple[Label, ...] | None
    n_labels: int
    set_size: int
    feature_columns: Columns | None = None
    labels_given: bool = False

    @property
    def vocabulary(self) -> LabelVocabulary:
        return LabelVocabulary(self.n_labels if self.labels is None else list(self.labels), "a log")

    @property
    def one_sided(self) -> str | None:
        """A sentence, if all answers that are there are yes, or all are no."""
        if not self.answered or 0 < self.hits < self.answered:
            return None
        answer, other = ("yes", "no") if self.hits else ("no", "yes")
        if self.rows == self.answered:
            candidates = ": right for sets of candidates that hold the label, else the others are missing"
            return f"All {self.answered:,} answers are {answer}{candidates if self.hits else ''}."
        how = "say so (--empty-is-no)" if self.hits else "write it into them"
        return (
            f"All {self.answered:,} answers that are there are {answer}, and {self.rows - self.answered:,} rows have "
            f"none. Do empty cells mean {other}? Then {how}; else nothing that follows here tells how often "
            "sets are right."
        )

    @property
    def learner_params(self) -> dict[str, Any]:
        """The parameters of a learner for this log: its labels, features and set size."""
        names = {"n_labels": self.n_labels} if self.labels is None else {"labels": self.labels}
        size = min(self.set_size, self.n_labels - 1)
        return {**names, "n_features": self.n_features, "set_size": size}

    def make_learner(self, spec: str, seed: int, set_size: int | None) -> Learner:
        """Return a new learner for this log.

        Args:
            spec: the learner, as in ``make``.
            seed: of its draws.
            set_size: left out, the log's; a promise needs all sizes, and has them.
        """
        params = self.learner_params | {"seed": seed} | ({} if set_size is None else {"set_size": set_size})
        learner = make(spec, **params)
        if set_size is None and learner.rule.sizes_vary:
            del params["set_size"]
            return make(spec, **params)
        return learner

    def declare_columns(self, learner: Learner) -> None:
        """Declare the columns to a learner that has seen no row yet."""
        if (
            self.feature_columns is not None
            and learner.inputs.layout is None
            and learner.n_features in (None, self.n_features)
        ):
            learner.use_columns(self.feature_columns)


def summarize(
    log: Log, *, labels: Iterable[Label] | int | None = None, n_features: int | None = None
) -> LogSummary:
    """Read a log once, and return what it holds.

    Args:
        log: the log.
        labels: all labels, or how many there are, where not every one was ever shown.
        n_features: for sparse rows whose last features never occur.
    """
    labels_seen: set[Label] = set()
    sizes: Counter[int] = Counter()
    counts = Counter(rows=0, answered=0, hits=0, with_propensity=0, with_rule=0)
    n_dense = n_sparse = 0
    for record in log:
        decision = record.decision
        x = record.decision.x
        labels_seen.update(
            decision.labels, decision.top, decision.eligible or (), _labels_in_rule(decision.rule)
        )
        if record.label is not None:
            labels_seen.add(record.label)
        sizes[decision.set_size] += 1
        counts.update(
            rows=1,
            answered=record.hit is not None,
            hits=record.hit is True,
            with_propensity=decision.propensity is not None,
            with_rule=decision.rule is not None,
        )
        if isinstance(x, Row):
            n_dense, n_sparse = max(n_dense, len(x.dense)), max(n_sparse, x.width)
        elif not isinstance(x, dict):
            n_dense = len(x)
    if not counts["rows"]:
        raise InvalidInput.must("content", log.name, "a log with a row that can be read", log.first_bad)
    names, count = _all_labels(labels_seen, labels, log.name)
    columns = log.feature_columns.for_labels(count) if len(log.feature_columns) else None
    width: int | tuple[int, int]  # (dense, sparse) if rows have both parts
    if columns is not None:
        width = columns.layout.n_features
    elif n_dense:
        width = (n_dense, n_sparse) if n_sparse else n_dense
    else:
        width = max(n_sparse, n_features or 1)
    return LogSummary(
        **counts,
        bad=log.bad,
        n_features=width,
        labels=names,
        n_labels=count,
        set_size=sizes.most_common(1)[0][0],
        feature_columns=columns,
        labels_given=labels is not None,
    )


def _labels_in_rule(rule: JsonObject | None) -> Iterable[Label]:
    """Return the labels that the record of a rule names."""
    cls = None if rule is None else rules().get(rule["name"])
    if rule is None or cls is None:
        return ()
    return [label_in_cell(label, "rule", "a log") for key in cls.label_keys for label in rule.get(key, ())]


def _all_labels(
    seen: set[Label], labels: Iterable[Label] | int | None, owner: str
) -> tuple[tuple[Label, ...] | None, int]:
    """Return the names of all labels, and how many there are; indices need no names."""
    all_numbers = all(isinstance(label, int) for label in seen)
    if isinstance(labels, int):
        if not all_numbers or max(seen, default=0) >= labels:
            got = sorted(map(str, seen))
            raise InvalidInput.must("labels", owner, f"whole numbers below {labels}", got)
        return None, labels
    if labels is not None:
        check_ordered(labels, "summarize")
        names_given = tuple(labels)
        unknown = sorted({str(s) for s in seen} - {str(g) for g in names_given})
        if unknown:
            raise InvalidInput.must("labels", owner, "among the given ones", unknown)
        return names_given, len(names_given)
    if all_numbers and 0 in seen and max(seen) < 2 * len(seen):
        return None, max(max(seen) + 1, 2)
    names = sorted(seen) if all_numbers else sorted(map(str, seen))
    if len(names) < 2:
        raise InvalidInput.must("labels", owner, "at least two different ones", names)
    return tuple(names), len(names)
