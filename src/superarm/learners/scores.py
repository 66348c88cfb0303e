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

from superarm._types import Array
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import FLOAT32_MAX, Layout, Rows
from superarm.data.tables import is_named_rows, named_row, named_rows
from superarm.learners import cores
from superarm.learners.families import AnyRuleLearner, AnyRuleParams
from superarm.learners.inputs import LearnerInputs
from superarm.native.core import Core, ScoresCore
from superarm.parameters import is_number


class ScoreInputs(LearnerInputs):
    """Rows of scores, by label."""

    def use_labels(self, vocabulary: LabelVocabulary, none_index: int | None = None) -> None:
        super().use_labels(vocabulary, none_index)
        self.layout = Layout(vocabulary.count, 0)
        self.n_features = vocabulary.count

    def eligible_indices(
        self, labels: Iterable[Label] | None, named: Mapping[str, Any] | None = None
    ) -> Array:
        """Return the indices of the labels that may be shown, and have a score in the row if it has names."""
        if named is not None and len(named) < self.vocabulary.count:
            scored = {self.vocabulary.index_of_text(label) for label in named}
            candidates = self.vocabulary.all() if labels is None else list(labels)
            labels = [label for label in candidates if self.vocabulary.index(label) in scored]
            if not labels:
                raise self.invalid("x", "scores of labels that may be shown, at least one", dict(named))
        return super().eligible_indices(labels)

    def encode_row(self, x: Any, *, grow: bool = True) -> Any:
        named = named_row(x)
        if named is None:
            return super().encode_row(x, grow=grow)
        s = np.full(self.vocabulary.count, -FLOAT32_MAX, np.float32)  # those without a score come last
        for label, score in named.items():
            index = self.vocabulary.index_of_text(label)
            if index is None:
                raise self.invalid(f"x[{label!r}]", "the score of a known label", score)
            if not is_number(score) or not -FLOAT32_MAX <= score <= FLOAT32_MAX:
                raise self.invalid(f"x[{label!r}]", "a finite number", score)
            s[index] = score
        return s

    def accepts_layout(self, layout: Layout) -> bool:
        """Return whether rows of this layout fit: also those from before labels were added."""
        return layout.n_dense <= self.vocabulary.count and not layout.n_sparse

    def example_row(self) -> Any:
        return {str(label): 0.0 for label in self.vocabulary.all()}

    def encode_rows(self, X: Any, *, grow: bool = True) -> Rows:
        if not is_named_rows(X):
            return super().encode_rows(X, grow=grow)
        named = list(named_rows(X))
        for x in named:
            if len(x) != self.vocabulary.count:
                raise self.invalid("X", f"scores of all {self.vocabulary.count} labels in every row", len(x))
        return Rows(np.stack([self.encode_row(x) for x in named]))


class Scores(AnyRuleLearner):
    """Sets by scores that come with each row: a rule behind the API of a learner.

    Args:
        n_features: left out, or k.
        intercept: as every learner has it; scores are taken as they are.
        scaling: as every learner has it; scores are taken as they are.

    >>> learner = Scores(labels=["ant", "bee", "cat", "dog"], set_size=2)
    >>> decision = learner.decide({"ant": 0.1, "bee": 2.0, "dog": 1.2})
    >>> decision.top, decision.eligible
    (['bee', 'dog'], ['ant', 'bee', 'dog'])
    >>> learner.update(decision, hit=True)
    """

    name = "scores"
    inputs_class = ScoreInputs

    def __init__(self, **common: Unpack[AnyRuleParams]) -> None:
        n_features = common.pop("n_features", None)
        super().__init__(**common)
        if n_features not in (None, self.n_labels):
            wanted = f"left out, or {self.n_labels}: a score for each label"
            raise self.invalid("n_features", wanted, n_features)

    def make_core(self, layout: Layout) -> Core:
        return ScoresCore(self.n_labels, cores.make_kernel(self))
