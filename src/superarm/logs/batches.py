"""Log rows as arrays: the labels that were shown, in the top set, eligible; and how probable each set was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from superarm._types import Array, Cell
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import Layout, Row, Rows, stack
from superarm.decisions.decision import Decision
from superarm.decisions.logged_decision import LoggedDecision
from superarm.errors import at_row
from superarm.explore import SetDistribution, distribution_of, rules
from superarm.explore.dilute_probabilities import log_comb
from superarm.learners import Learner
from superarm.logs.log import UNIFORM
from superarm.logs.parsing import BadRow


@dataclass(frozen=True)
class LogBatch:
    """Some rows with an outcome; n x k arrays say which labels belong to a set."""

    records: list[LoggedDecision]
    hit: Array
    shown: Array
    top: Array
    eligible: Array
    logged_propensity: Array  # NaN where the log has none
    distributions: list[SetDistribution | None]  # None where the log does not say how the set was drawn

    @classmethod
    def from_records(cls, records: list[LoggedDecision], labels: LabelVocabulary) -> LogBatch:
        """Return rows with an outcome as arrays."""
        n = len(records)
        k = labels.count
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
            distributions.append(_distribution(decision, all_labels, record.row_index))
        hit = np.array([record.hit for record in records], np.float64)
        return cls(records, hit, shown, top, eligible, propensity, distributions)

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

    def matrix(self, n_features: int | tuple[int, int]) -> Rows | list[dict[str, Cell]]:
        """Return the features, as many as a learner or summary says: a matrix; or rows with names as they are."""
        rows: list[Any] = [record.decision.x for record in self.records]
        if isinstance(rows[0], dict):
            return rows
        if isinstance(n_features, tuple):
            return stack(rows, Layout(*n_features))
        return stack(rows, Layout(0, n_features) if isinstance(rows[0], Row) else Layout(n_features, 0))

    def matrix_for(self, learner: Learner) -> Rows | list[dict[str, Cell]]:
        """Return the features as a learner takes them; of rows with names, the columns that it was trained with."""
        X = self.matrix(learner.n_features)
        columns = learner.columns
        if columns is None or columns.is_open or not isinstance(X, list):
            return X
        return [{name: x.get(name) for name in columns.columns} for x in X]


def batches(records: Iterable[LoggedDecision], labels: LabelVocabulary) -> Iterator[list[LoggedDecision]]:
    """Yield rows with an outcome, 64 at first and 4096 at last: what learns from batch to batch is young at first."""
    most = max(1, min(4096, 20_000_000 // labels.count))
    size = min(64, most)
    answered = (record for record in records if record.hit is not None)
    while batch := list(islice(answered, size)):
        yield batch
        size = min(2 * size, most)


def _distribution(decision: Decision, all_labels: Sequence[int], row_index: int) -> SetDistribution | None:
    """Return the distribution that a set was drawn from, over label indices; ``None`` if its rule is not known."""
    try:
        return distribution_of(decision, all_labels)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        where = at_row("the log", row_index)
        raise BadRow.must("rule", where, "as superarm wrote it, with all it names", decision.rule) from error


# ---------------------------------------------------------------- labels


def label_indices(labels: LabelVocabulary, given: Iterable[Label], field: str, owner: str) -> list[int]:
    """Return the indices of labels as a log spells them: 3, 3.0 and "3" are one label."""
    indices = []
    for label in given:
        index = labels.index_of_text(label)
        if index is None:
            raise BadRow.must(field, owner, "known labels", label)
        indices.append(index)
    return indices


def relabel(record: LoggedDecision, labels: LabelVocabulary, names: Sequence[Label]) -> Decision:
    """Return the decision of a row, with ``names[i]`` for the label of index i."""
    decision = record.decision
    where = at_row("the log", record.row_index)

    def own(given: Iterable[Label], field: str = "labels") -> tuple[Label, ...]:
        return tuple(names[i] for i in label_indices(labels, given, field, where))

    eligible = None if decision.eligible is None else own(decision.eligible, "eligible")
    top = own(decision.top, "top")
    rule = decision.rule
    if rule is not None:
        if rule["name"] == "uniform" or (rule == UNIFORM and not top):
            # any top set gives this draw
            rule = UNIFORM
            top = (eligible or tuple(names))[: decision.set_size]
        else:
            cls = rules().get(rule["name"])
            named = () if cls is None else cls.label_keys
            rule = {**rule, **{key: own(rule[key], "rule") for key in named if key in rule}}
    return Decision.from_parts(
        x=decision.x,
        sets=(own(decision.labels), own(decision.drawn), top),
        size=decision.set_size,
        eligible=eligible,
        n_labels=len(names),
        log_propensity=decision.log_propensity,
        rule=rule,
        learner=decision.learner,
    )
