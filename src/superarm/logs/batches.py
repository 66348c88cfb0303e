"""Log rows as arrays: the labels that were shown, in the top set, eligible; and how probable each set was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from superarm._types import Array
from superarm.data.labels import LabelVocabulary
from superarm.data.rows import Layout, Row, Rows, stack
from superarm.decisions.decision import Decision
from superarm.decisions.record import Record
from superarm.errors import at_row
from superarm.explore import SetDistribution, distribution_of
from superarm.explore.dilute_probabilities import log_comb
from superarm.learners import Learner
from superarm.logs.parsing import BadRow
from superarm.logs.relabel import relabel

T = TypeVar("T")


@dataclass(frozen=True)
class LogBatch:
    """Some rows with an outcome; n x k arrays say which labels belong to a set."""

    records: list[Record]
    hit: Array
    shown: Array
    top: Array
    eligible: Array
    logged_propensity: Array  # NaN where the log has none
    distributions: list[SetDistribution | None]  # None where the log does not say how the set was drawn

    def __len__(self) -> int:
        return len(self.hit)

    @cached_property
    def sets(self) -> list[frozenset[int]]:
        """The labels that were shown in each row."""
        return [frozenset(np.flatnonzero(row).tolist()) for row in self.shown]

    @cached_property
    def n_eligible(self) -> Array:
        return np.asarray(self.eligible.sum(axis=1))

    @cached_property
    def n_shown(self) -> Array:
        return np.asarray(self.shown.sum(axis=1))

    @cached_property
    def log_n_sets(self) -> Array:
        """The logarithm of how many sets of as many labels were possible."""
        sizes = zip(self.n_eligible.tolist(), self.n_shown.tolist(), strict=True)
        return np.array([log_comb(n, m) for n, m in sizes])

    @cached_property
    def rule_propensity(self) -> Array:
        """The probability of each shown set by the rule that drew it; NaN where the log does not name one."""
        pairs = zip(self.distributions, self.sets, strict=True)
        return np.array(
            [np.nan if drawn_from is None else drawn_from.probability(labels) for drawn_from, labels in pairs]
        )

    @cached_property
    def propensity(self) -> Array:
        """The probability of each shown set: as logged, else by its rule; NaN where neither is known."""
        p = np.where(np.isnan(self.logged_propensity), self.rule_propensity, self.logged_propensity)
        return np.where(p > 0.0, p, np.nan)  # what was shown can not have been impossible

    def matrix(self, n_features: Any, layout: Layout | None = None) -> Rows | list[dict[str, Any]]:
        """The features, in this layout or as they are; rows with names as they are."""
        rows: list[Any] = [record.decision.x for record in self.records]
        if isinstance(rows[0], dict):
            return rows
        if layout is None:
            sparse = isinstance(rows[0], Row)
            widths = n_features if isinstance(n_features, tuple) else (0, n_features)[:: 1 if sparse else -1]
            layout = Layout(*widths)
        return stack(rows, layout)

    def matrix_for(self, learner: Learner) -> Any:
        """The features as a learner takes them: of rows with names, those that it was trained with."""
        X, columns = self.matrix(learner.n_features, learner.inputs.layout), learner.columns
        if columns is None or columns.is_open or not isinstance(X, list):
            return X
        return [{name: x.get(name) for name in columns.columns} for x in X]


def batches(records: Iterable[Record], labels: LabelVocabulary) -> Iterator[LogBatch]:
    """Rows with an outcome, in batches of 64 that grow to 4096: what learns from batch to batch is young at first."""
    most = max(1, min(4096, 20_000_000 // labels.count))
    size = min(64, most)
    pending: list[Record] = []
    for record in records:
        if record.hit is not None:
            pending.append(record)
        if len(pending) == size:
            yield _batch(pending, labels)
            pending, size = [], min(2 * size, most)
    if pending:
        yield _batch(pending, labels)


def _batch(records: list[Record], labels: LabelVocabulary) -> LogBatch:
    n, k = len(records), labels.count
    shown, top, eligible = (np.zeros((n, k), bool) for _ in range(3))
    propensity = np.full(n, np.nan)
    distributions: list[SetDistribution | None] = []
    all_labels = range(k)
    for i, record in enumerate(records):
        decision = relabel(record, labels, all_labels)
        shown[i, decision.labels] = True
        eligible[i, all_labels if decision.eligible is None else decision.eligible] = True
        if decision.propensity is not None:
            propensity[i] = decision.propensity
        if decision.top:
            top[i, decision.top] = True
        distributions.append(_distribution(decision, all_labels, record.row_number))
    hit = np.array([record.hit for record in records], np.float64)
    return LogBatch(records, hit, shown, top, eligible, propensity, distributions)


def _distribution(decision: Decision, all_labels: Sequence[int], number: int) -> SetDistribution | None:
    """Return what the set of a decision over label numbers was drawn from; ``None`` if its rule is not known."""
    try:
        return distribution_of(decision, all_labels)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        where = at_row("the log", number)
        raise BadRow.must("rule", where, "as superarm wrote it, with all it names", decision.rule) from error


def take(table: T, rows: Sequence[int] | Array) -> T:
    """Return some of the rows of a table: a tuple or a dataclass of columns, which are arrays, lists or tables."""
    if isinstance(table, np.ndarray):
        return table[rows]  # type: ignore[return-value]
    if isinstance(table, list):
        return [table[i] for i in rows]  # type: ignore[return-value]
    columns = table if isinstance(table, tuple) else [getattr(table, one.name) for one in fields(table)]  # type: ignore[arg-type]
    return type(table)(*(take(column, rows) for column in columns))
