"""Policies: ways to choose sets, as a log can be asked about them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm._extras import need
from superarm._types import Array
from superarm.data.labels import Labels
from superarm.data.rows import FLOAT32_MAX
from superarm.decisions.decision import Label, Record
from superarm.errors import InvalidInput, at_row
from superarm.explore import Dilute, Greedy, Mixture, Rule, SetDistribution, Uniform, distribution_of
from superarm.explore.rule import log_scores
from superarm.learners import Learner
from superarm.logs.batches import Batch
from superarm.logs.cells import BadRow, parse_numbers
from superarm.logs.survey import label_numbers
from superarm.losses import softmax

ScoreSource = Callable[[Any], Any] | str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to choose sets: by a learner, by anybody's scores, or always the same.

    Attributes:
        name: how tables call it.
        learner: it ranks the labels.
        scores: or this does: a function of the features (a matrix; a Polars frame if rows have names)
            that gives n x k scores in the order of the labels; or a column of the log that holds them, a
            list or ``{label: score}`` (those that could not be shown need none); or a column for each label.
        probabilities: the same, where they are probabilities and not scores.
        fixed: or always these labels, as far as they are eligible.
        set_size: how many; the learner's or the rule's own by default. With a coverage, the most.
        coverage: as many as this coverage needs, by the learner's threshold as it stands; the default of a
            learner with a promise is its own, unless a size is asked for.
        rule: it draws its set by this rule (`superarm.explore`); without one it shows the best labels.
            A budget stands as it is if the rule has been used, and else runs along the log.
        gamma: short for ``rule=Dilute(gamma=...)``, which also works around a fixed set.
        draws: it draws as the learner itself does, with its budget as it stands now.
    """

    name: str
    learner: Learner | None = None
    fixed: Sequence[Label] | None = None
    set_size: int | None = None
    gamma: float | None = None
    draws: bool = False
    scores: ScoreSource | None = None
    probabilities: ScoreSource | None = None
    rule: Rule | None = None
    coverage: float | None = None

    def __post_init__(self) -> None:
        ways = (self.learner, self.fixed, self.scores, self.probabilities)
        if sum(way is not None for way in ways) != 1:
            wanted = "one of a learner, scores, probabilities and a fixed list"
            raise InvalidInput.must("policy", self.name, wanted, f"{sum(way is not None for way in ways)}")
        if self.gamma is not None and not 0.0 < self.gamma <= 1.0:
            raise InvalidInput.must("gamma", self.name, "in (0, 1]", self.gamma)
        if self.draws and (self.learner is None or self.gamma is not None or self.rule is not None):
            raise InvalidInput.must("draws", self.name, "for a learner without gamma= and rule=", self.draws)
        if self.rule is not None and self.gamma is not None:
            raise InvalidInput.must("gamma", self.name, "left out: there is a rule", self.gamma)
        if self.rule is not None and self.fixed is not None:
            raise InvalidInput.must("rule", self.name, "left out for a fixed list (gamma= works)", self.rule)
        if self.coverage is not None and not 0.0 < self.coverage < 1.0:
            raise InvalidInput.must("coverage", self.name, "in (0, 1)", self.coverage)
        if self.coverage is not None and (
            self.learner is None or self.draws or self.gamma is not None or self.rule is not None
        ):
            wanted = "for a learner without draws=, gamma= and rule="
            raise InvalidInput.must("coverage", self.name, wanted, self.coverage)
        if self.size is None:
            raise InvalidInput.must("set_size", self.name, "given, or a rule with one", None)

    @property
    def size(self) -> int | None:
        if self.set_size is not None:
            return self.set_size
        if self.fixed is not None:
            return len(self.fixed)
        if self.learner is not None:
            return self.learner.set_size
        return None if self.rule is None else self.rule.set_size

    @property
    def promise(self) -> float | None:
        """The coverage that its sets are chosen for; ``None`` if they are all of one size."""
        unchanged = self.set_size is None and not self.draws and self.gamma is None and self.rule is None
        if (
            self.coverage is None
            and self.learner is not None
            and unchanged
            and self.learner.coverage is not None
        ):
            return self.learner.coverage.promised
        return self.coverage

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it reads."""
        source = self.scores if self.scores is not None else self.probabilities
        if source is None or callable(source):
            return ()
        return (source,) if isinstance(source, str) else tuple(source)

    @property
    def rule_words(self) -> str | None:
        """The policy's rule, in words; ``None`` if it shows the best labels."""
        if self.gamma is not None:
            return f"gamma = {self.gamma:g}"
        rule = self.learner.rule if self.draws and self.learner is not None else self.rule
        if rule is None and self.promise is not None:
            return f"coverage = {self.promise:g}"
        return None if rule is None else repr(rule)


def has_probabilities(learner: Learner) -> bool:
    """Whether its scores are logarithms of probabilities."""
    return hasattr(learner, "predict_proba") or learner.learns_from_given


class PolicyRunner:
    """A policy that chooses for batches of a log. Nothing of the policy's own changes."""

    def __init__(self, policy: Policy, labels: Labels, n_features: int) -> None:
        self.policy, self.labels, self.n_features = policy, labels, n_features
        learner = policy.learner
        self.order: Any = None  # of the log's labels among the learner's own
        if learner is not None:
            own, theirs = ([str(label) for label in known.all()] for known in (learner.label_set, labels))
            if sorted(own) != sorted(theirs):
                wanted = f"those of the log, {tuple(labels.all())}"
                raise InvalidInput.must("labels", policy.name, wanted, tuple(learner.label_set.all()))
            if own != theirs:
                self.order = [own.index(label) for label in theirs]
        self.fixed = (
            None if policy.fixed is None else label_numbers(labels, policy.fixed, "fixed", policy.name)
        )
        size = policy.size
        if size is None or not 1 <= size <= labels.count:
            raise InvalidInput.must("set_size", policy.name, f"in 1..{labels.count}", size)
        self.size: int = size
        rule = policy.rule
        if learner is not None and policy.draws:
            rule = learner.rule
        self.gamma = 1.0 if isinstance(rule, Uniform) else policy.gamma
        if isinstance(rule, Dilute):
            self.gamma = rule.gamma
        self.threshold = None  # the least probability that is shown
        if policy.promise is not None:
            self.threshold = learner.coverage_at(policy.promise).edge  # type: ignore[union-attr]
        self.rule: Rule | None = None
        self.budget_stands = False  # whether its budget stands as it is
        if rule is not None and not isinstance(rule, Dilute | Greedy | Uniform):
            if rule.single_label and size != 1:
                raise InvalidInput.must("set_size", policy.name, "1 (its rule knows no larger sets)", size)
            own_rule = learner is not None and policy.draws
            self.rule = learner.rule_now() if own_rule else copy.copy(rule)  # type: ignore[union-attr]
            self.rule.labels = None
            # a budget that was used stands as it is, a new one runs along the log
            self.budget_stands = learner.inputs.layout is not None if own_rule else rule.round > 0  # type: ignore[union-attr]

    @property
    def has_probabilities(self) -> bool:
        """Whether its scores are logarithms of probabilities."""
        learner = self.policy.learner
        return self.policy.probabilities is not None if learner is None else has_probabilities(learner)

    def scores(self, batch: Batch) -> Array | None:
        """Of all labels, by row; ``None`` for a fixed list."""
        learner = self.policy.learner
        if learner is None:
            return None if self.fixed is not None else self._scores(batch)
        s = learner.scores(batch.matrix_for(learner))
        return s if self.order is None else s[:, self.order]

    @property
    def shows_one_set(self) -> bool:
        """Whether there is one set that it would show for a row; else it draws one of several."""
        return self.rule is None and self.gamma is None

    def choose(self, batch: Batch, s: Array | None) -> list[SetDistribution]:
        """How the policy would choose the set of each row, given its scores."""
        top = np.zeros(batch.shown.shape, bool)
        if s is None:
            assert self.fixed is not None
            top[:, self.fixed[: self.size]] = True
            return self._around(batch.eligible, top & batch.eligible)
        best = np.argsort(-np.where(batch.eligible, s, -np.inf), axis=1, kind="stable")[:, : self.size]
        np.put_along_axis(top, best, True, axis=1)
        top &= batch.eligible
        if self.threshold is not None:
            p = softmax(np.where(batch.eligible, s, -np.inf))
            top &= (p >= self.threshold) | (p == p.max(axis=1, keepdims=True))
        if self.rule is None:
            return self._around(batch.eligible, top)
        return [self._distribution(s[i], batch.eligible[i]) for i in range(len(batch))]

    def _around(self, eligible: Array, top: Array) -> list[SetDistribution]:
        """The top sets, or the paper's draws around them."""
        labels, everything = [np.flatnonzero(row).tolist() for row in top], tuple(range(eligible.shape[1]))
        candidates = [everything if row.all() else np.flatnonzero(row).tolist() for row in eligible]
        pairs = zip(candidates, labels, strict=True)
        if self.gamma is None:
            return [Mixture.certain(among_labels, best) for among_labels, best in pairs]
        return [Mixture.dilute(among_labels, best, self.gamma) for among_labels, best in pairs]

    def _distribution(self, s: Array, eligible: Array) -> SetDistribution:
        assert self.rule is not None
        candidates = None if eligible.all() else np.flatnonzero(eligible).tolist()
        if self.budget_stands:
            return self.rule.distribution(s, eligible=candidates, set_size=self.size)
        distribution = distribution_of(self.rule.decide(s, eligible=candidates, set_size=self.size))
        assert distribution is not None
        return distribution

    # ------------------------------------------------------------ anybody's scores

    def _scores(self, batch: Batch) -> Array:
        policy, k = self.policy, self.labels.count
        source = policy.scores if policy.scores is not None else policy.probabilities
        what = "scores" if policy.scores is not None else "probabilities"
        if callable(source):
            s = _call_scores(source, batch.matrix(self.n_features), policy.name, what)
        else:
            rows = zip(batch.records, batch.eligible, strict=True)
            s = np.stack([self._row_scores(record, eligible, what) for record, eligible in rows])
        if s.shape != (len(batch), k) or not np.isfinite(s).all():
            wanted = f"finite, {k} for each row, one a label"
            raise InvalidInput.must(what, policy.name, wanted, f"shape {s.shape}")
        return s if what == "scores" else log_scores(s, policy.name)

    def _row_scores(self, record: Record, eligible: Array, what: str) -> Array:
        columns, k, also = self.policy.columns, self.labels.count, record.extra_columns
        field, where = ", ".join(columns), at_row("the log", record.row_number)
        values = [None if also is None else also[name] for name in columns]
        value: Any = values[0] if len(columns) == 1 else values
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = _json_object(value, field, where)
        if isinstance(value, dict):
            value = {label: score for label, score in value.items() if score is not None}  # gaps of a table
            numbers = label_numbers(self.labels, value, field, where)
            if eligible.sum() > eligible[numbers].sum():
                raise BadRow.must(field, where, f"{what} of all labels that could be shown", value)
            s = np.full(k, -FLOAT32_MAX if what == "scores" else 0.0)
            s[numbers] = parse_numbers(list(value.values()), field, where)
            return s
        s = np.asarray(parse_numbers(value, field, where))
        if s.shape != (k,) or not np.isfinite(s).all():
            raise BadRow.must(field, where, f"{k} finite {what}, one a label", value)
        return s


def _json_object(text: str, field: str, where: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        raise BadRow.must(field, where, "a list of numbers, or {label: number}", text) from None


def _call_scores(scores: Callable[[Any], Any], X: Any, name: str, what: str) -> Array:
    """Scores of a function of the features: a NumPy matrix, SciPy's where rows are sparse, a pair of
    both where they are mixed, or a Polars frame where they have names."""
    if isinstance(X, list):
        need("logs")
        import polars as pl

        features: Any = pl.DataFrame(X, infer_schema_length=None, strict=False)
    elif X.starts is None:
        features = X.dense
    else:
        need("logs")
        from scipy.sparse import csr_matrix

        sparse = csr_matrix((X.values, X.indices, X.starts), shape=(len(X), X.width))
        features = sparse if X.dense is None else (X.dense, sparse)
    try:
        return np.asarray(scores(features), np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must(what, name, "a function of a matrix of features", str(error)) from error
