"""Scores: another model ranks the labels; what is left to do is to choose sets, and to count answers.

A row is a score for each label, ``{"login": 2.1, "billing": 0.3, …}``, read as logarithms of probabilities: softmax
makes them probabilities. Labels without a score cannot be shown for that row. Answers move the rule
(its budget, or the threshold of a promised coverage), and nothing else is learnt. The service has it for models of
one's own (`superarm serve --learner scores`): whatever it can do with decisions, it does with these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np

from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import FLOAT32_MAX, Layout, Rows
from superarm.data.tables import is_named_rows, named_row, records
from superarm.decisions import Decision
from superarm.learners.families import ExploringLearner, ExploringParams
from superarm.learners.inputs import InputSchema
from superarm.native.core import Core, Cursor, ScoresCore
from superarm.parameters import is_number


class ScoreSchema(InputSchema):
    """Rows of scores, by label."""

    def use_labels(self, vocabulary: LabelVocabulary, none_index: int | None = None) -> None:
        super().use_labels(vocabulary, none_index)
        self.layout = Layout(vocabulary.count, 0)
        self.n_features = vocabulary.count

    def encode_row(self, x: Any, *, grow: bool = True) -> Any:
        named = named_row(x)
        if named is None:
            return super().encode_row(x, grow=grow)
        s = np.full(self.vocabulary.count, -FLOAT32_MAX, np.float32)  # those without a score come last
        for label, score in named.items():
            number = self.vocabulary.index_of_text(label)
            if number is None:
                raise self.invalid(f"x[{label!r}]", "the score of a known label", score)
            if not is_number(score) or not -FLOAT32_MAX <= score <= FLOAT32_MAX:
                raise self.invalid(f"x[{label!r}]", "a finite number", score)
            s[number] = score
        return s

    def could_have_encoded(self, layout: Layout) -> bool:
        """Return whether its rows have this layout, or had it before labels were added."""
        return layout.n_dense <= self.vocabulary.count and not layout.n_sparse

    def example_row(self) -> Any:
        return {str(label): 0.0 for label in self.vocabulary.all()}

    def encode_rows(self, X: Any, *, grow: bool = True) -> Rows:
        if not is_named_rows(X):
            return super().encode_rows(X, grow=grow)
        named = list(records(X))
        for x in named:
            if len(x) != self.vocabulary.count:
                raise self.invalid("X", f"scores of all {self.vocabulary.count} labels in every row", len(x))
        return Rows(np.stack([self.encode_row(x) for x in named]))


class Scores(ExploringLearner):
    """Sets by scores that come with each row: a rule behind the API of a learner.

    Args:
        n_features: left out, or k.
        intercept: as every learner has it; scores are taken as they are.
        scaling: the same.

    >>> learner = Scores(labels=["ant", "bee", "cat", "dog"], set_size=2)
    >>> decision = learner.decide({"ant": 0.1, "bee": 2.0, "dog": 1.2})
    >>> decision.top, decision.eligible
    (['bee', 'dog'], ['ant', 'bee', 'dog'])
    >>> learner.update(decision, hit=True)
    """

    name = "scores"
    schema_class = ScoreSchema

    def __init__(self, **common: Unpack[ExploringParams]) -> None:
        n_features = common.pop("n_features", None)
        super().__init__(**common)
        if n_features not in (None, self.n_labels):
            wanted = f"left out, or {self.n_labels}: a score for each label"
            raise self.invalid("n_features", wanted, n_features)
        self.ensure_core()  # how long a row is, is known

    def make_core(self, layout: Layout) -> Core:
        return ScoresCore(self.n_labels, self._make_kernel())

    def decide(
        self,
        x: Any,
        *,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
        cursor: Cursor | None = None,
    ) -> Decision:
        """Choose a set of labels to show, by the scores x.

        Args:
            x: ``{label: number}``, of all labels or of those that may be shown; or an array with a number for each.
            eligible: the only labels that may be shown this time.
            set_size: how many to show this time; with a promised coverage, the most.
            coverage: another promise, for this time.
            cursor: decide at this cursor, which is moved; the learner stays as it is, until `advance`.
        """
        named = named_row(x)
        return super().decide(
            x if named is None else named,
            eligible=eligible if named is None else self._labels_with_scores(named, eligible),
            set_size=set_size,
            coverage=coverage,
            cursor=cursor,
        )

    def _labels_with_scores(
        self, x: Mapping[str, Any], eligible: Iterable[Label] | None
    ) -> Iterable[Label] | None:
        """Return the eligible labels that have a score."""
        if len(x) >= self.n_labels:
            return eligible
        numbers = {self.vocabulary.index_of_text(label) for label in x}
        candidates = self.vocabulary.all() if eligible is None else list(eligible)
        scored = [label for label in candidates if self.vocabulary.index(label) in numbers]
        if not scored:
            raise self.invalid("x", "scores of labels that may be shown, at least one", dict(x))
        return scored
