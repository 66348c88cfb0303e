"""Policy: a way to choose sets, which a log can evaluate; and its distributions of sets for the rows of a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from superarm._extras import require_extra
from superarm._types import Array
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import FLOAT32_MAX
from superarm.decisions.logged_decision import LoggedDecision
from superarm.errors import InvalidInput, Unquoted, at_row
from superarm.explore import Dilute, Greedy, Mixture, Rule, SetDistribution, Uniform, distribution_of
from superarm.explore.scores import log_scores
from superarm.learners import Learner
from superarm.logs.batches import LogBatch, label_indices
from superarm.logs.parsing import BadRow, looks_like_object, parse_numbers, parse_object
from superarm.logs.summary import LogSummary
from superarm.losses import softmax

ScoreSource = Callable[[Any], Any] | str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to choose sets: by a learner, by scores, or always the same.

    Attributes:
        name: how tables call it.
        learner: it ranks the labels.
        scores: or this does: a function of the features (a matrix; a Polars frame if columns have words or gaps)
            that gives n x k scores in the order of the labels; or a column of the log that holds them, a
            list or ``{label: score}`` (those that could not be shown need none); or a column for each label. A list and
            columns are in the order of the labels that were given to `summarize`.
        probabilities: the same, where they are probabilities and not scores.
        fixed: or always these labels, as far as they are eligible.
        set_size: how many; the learner's or the rule's own by default. With a coverage, the most.
        rule: it draws its set by this rule (`superarm.explore`); ``"own"`` draws as the learner itself does, with its
            budget as it is now; without one it shows the best labels. The budget of a rule is frozen if the rule has
            been used, and else runs along the log. Around a fixed list, `superarm.explore.Dilute` can draw.
        coverage: as many as this coverage needs, by the learner's current threshold; the default of a learner with a
            target coverage is its own, unless a size is asked for.
    """

    name: str
    learner: Learner | None = None
    fixed: Sequence[Label] | None = None
    set_size: int | None = None
    scores: ScoreSource | None = None
    probabilities: ScoreSource | None = None
    rule: Rule | Literal["own"] | None = None
    coverage: float | None = None

    def __post_init__(self) -> None:
        rankings = sum(one is not None for one in (self.learner, self.fixed, self.scores, self.probabilities))
        if rankings != 1:
            wanted = "one of a learner, scores, probabilities and a fixed list"
            raise InvalidInput.must("policy", self.name, wanted, rankings)
        if self.rule is not None and self.rule != "own" and not isinstance(self.rule, Rule):
            raise InvalidInput.must("rule", self.name, "a rule of superarm.explore, or 'own'", self.rule)
        if self.rule == "own" and self.learner is None:
            raise InvalidInput.must("rule", self.name, "a rule: only a learner has its own", self.rule)
        if self.fixed is not None and not isinstance(self.rule, Dilute | None):
            raise InvalidInput.must("rule", self.name, "left out for a fixed list, or Dilute", self.rule)
        if self.coverage is not None:
            if not 0.0 < self.coverage < 1.0:
                raise InvalidInput.must("coverage", self.name, "in (0, 1)", self.coverage)
            if self.learner is None or self.rule is not None:
                raise InvalidInput.must("coverage", self.name, "for a learner without a rule", self.coverage)
            if self.learner.coverage is None:
                wanted = "left out: the learner has no target coverage (train it as set-logit:coverage=0.9)"
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
        return self.rule.set_size if isinstance(self.rule, Rule) else None

    @property
    def drawing_rule(self) -> Rule | None:
        """The rule that draws; ``None`` if the best labels are shown."""
        if isinstance(self.rule, str):
            return None if self.learner is None else self.learner.rule
        return None if isinstance(self.rule, Greedy) else self.rule

    @property
    def promised_coverage(self) -> float | None:
        """The coverage that its sets are chosen for; ``None`` if they are all of one size."""
        if self.coverage is not None or self.learner is None or self.learner.coverage is None:
            return self.coverage
        return self.learner.coverage.promised if self.set_size is None and self.rule is None else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that the policy reads."""
        source = self.scores if self.scores is not None else self.probabilities
        if source is None or callable(source):
            return ()
        return (source,) if isinstance(source, str) else tuple(source)

    @property
    def rule_text(self) -> str | None:
        """The text that says how the policy draws; ``None`` if it shows the best labels."""
        rule = self.drawing_rule
        if isinstance(rule, Dilute):
            return f"gamma = {rule.gamma:g}"
        if rule is None and self.promised_coverage is not None:
            return f"coverage = {self.promised_coverage:g}"
        return None if rule is None else repr(rule)


def _learner_order(learner: Learner, labels: LabelVocabulary, policy: str) -> list[int] | None:
    """Return the indices of the log's labels among the learner's own; ``None`` if these are in the same order."""
    own, logged = ([str(label) for label in known.all()] for known in (learner.vocabulary, labels))
    if sorted(own) != sorted(logged):
        wanted = f"those of the log, {tuple(labels.all())}"
        raise InvalidInput.must("labels", policy, wanted, tuple(learner.vocabulary.all()))
    return None if own == logged else [own.index(label) for label in logged]


class PolicyRunner:
    """Chooses as a policy would, for batches of a log. It changes nothing in the policy."""

    def __init__(self, policy: Policy, summary: LogSummary) -> None:
        self.policy = policy
        self.labels = summary.vocabulary
        self.n_features = summary.n_features
        self.labels_in_order = summary.labels is None or summary.labels_given
        labels = self.labels
        learner = policy.learner
        size = policy.size
        self.learner_order = None if learner is None else _learner_order(learner, labels, policy.name)
        self.fixed: list[int] | None = None
        if policy.fixed is not None:
            self.fixed = label_indices(labels, policy.fixed, "fixed", policy.name)
        if size is None or not 1 <= size <= labels.count:
            raise InvalidInput.must("set_size", policy.name, f"in 1..{labels.count}", size)
        self.size: int = size
        rule = policy.drawing_rule
        self.gamma = rule.gamma if isinstance(rule, Dilute) else 1.0 if isinstance(rule, Uniform) else None
        self.threshold = None  # the least probability that is shown
        if policy.promised_coverage is not None:
            self.threshold = learner.coverage_at(policy.promised_coverage).edge  # type: ignore[union-attr]
        self.rule: Rule | None = None
        self.budget_frozen = False
        if rule is not None and self.gamma is None:
            if rule.shows_one_label and size != 1:
                raise InvalidInput.must("set_size", policy.name, "1 (its rule knows no larger sets)", size)
            if policy.rule == "own":
                assert learner is not None
                self.rule, self.budget_frozen = learner.current_rule(), learner.inputs.layout is not None
            else:
                self.rule, self.budget_frozen = rule.without_label_names(), rule.round > 0

    @property
    def has_probabilities(self) -> bool:
        """Whether the policy's scores are logarithms of probabilities."""
        if self.policy.learner is None:
            return self.policy.probabilities is not None
        return self.policy.learner.scores_are_log_probabilities

    def scores(self, batch: LogBatch) -> Array:
        """Return the scores of all labels, by row; -inf for labels that are never shown."""
        learner = self.policy.learner
        if self.fixed is not None:
            s = np.full(batch.shown.shape, -np.inf)
            s[:, self.fixed[: self.size]] = 0.0
            return s
        if learner is None:
            return self._given_scores(batch)
        s = learner.scores(batch.matrix_for(learner))
        return s if self.learner_order is None else s[:, self.learner_order]

    @property
    def shows_one_set(self) -> bool:
        """Whether the policy shows one certain set for a row; else it draws one of several."""
        return self.rule is None and self.gamma is None

    def distributions(self, batch: LogBatch, s: Array) -> list[SetDistribution]:
        """Return the distribution of the policy's set for each row, given its scores."""
        all_labels = range(self.labels.count)
        eligible = [all_labels if row.all() else np.flatnonzero(row).tolist() for row in batch.eligible]
        if self.rule is not None:
            return [self._distribution(self.rule, s[i], labels) for i, labels in enumerate(eligible)]
        pairs = zip(eligible, self._top_sets(batch.eligible, s), strict=True)
        if self.gamma is None:
            return [Mixture.certain(labels, top) for labels, top in pairs]
        return [Mixture.dilute(labels, top, self.gamma) for labels, top in pairs]

    def _top_sets(self, eligible: Array, s: Array) -> list[list[int]]:
        """Return the best labels of each row; with a coverage, as many as its threshold asks for."""
        s = np.where(eligible, s, -np.inf)
        best = np.argsort(-s, axis=1, kind="stable")[:, : self.size]
        top = np.zeros(s.shape, bool)
        np.put_along_axis(top, best, True, axis=1)
        top &= s > -np.inf
        if self.threshold is not None:
            p = softmax(s)
            top &= (p >= self.threshold) | (p == p.max(axis=1, keepdims=True))
        return [np.flatnonzero(row).tolist() for row in top]

    def _distribution(self, rule: Rule, s: Array, eligible: Sequence[int]) -> SetDistribution:
        candidates = None if isinstance(eligible, range) else eligible
        if self.budget_frozen:
            return rule.distribution(s, eligible=candidates, set_size=self.size)
        distribution = distribution_of(rule.decide(s, eligible=candidates, set_size=self.size))
        assert distribution is not None
        return distribution

    # ------------------------------------------------------------ scores from elsewhere

    def _given_scores(self, batch: LogBatch) -> Array:
        policy = self.policy
        k = self.labels.count
        source = policy.scores if policy.scores is not None else policy.probabilities
        what = "scores" if policy.scores is not None else "probabilities"
        if callable(source):
            s = _call_scores(source, batch.matrix(self.n_features), policy.name, what)
        else:
            rows = zip(batch.records, batch.eligible, strict=True)
            s = np.stack([self._row_scores(record, eligible, what) for record, eligible in rows])
        if s.shape != (len(batch), k) or not np.isfinite(s).all():
            wanted = f"finite, {k} for each row, one a label"
            raise InvalidInput.must(what, policy.name, wanted, Unquoted(f"shape {s.shape}"))
        return s if what == "scores" else log_scores(s, policy.name)

    def _row_scores(self, record: LoggedDecision, eligible: Array, what: str) -> Array:
        columns = self.policy.columns
        k = self.labels.count
        cells = record.extra_columns
        field = ", ".join(columns)
        where = at_row("the log", record.row_index)
        values = [None if cells is None else cells[name] for name in columns]
        value: Any = values[0] if len(columns) == 1 else values
        by_label = parse_object(value)
        if by_label is None and looks_like_object(value):
            raise BadRow.must(field, where, "a list of numbers, or {label: number}", value)
        if by_label is not None:
            # None: missing in a table
            value = {label: score for label, score in by_label.items() if score is not None}
            indices = label_indices(self.labels, value, field, where)
            if eligible.sum() > eligible[indices].sum():
                raise BadRow.must(field, where, f"{what} of all labels that could be shown", value)
            s = np.full(k, -FLOAT32_MAX if what == "scores" else 0.0)
            s[indices] = parse_numbers(list(value.values()), field, where)
            return s
        if not self.labels_in_order:
            wanted = "given, in the order of the list, where scores come without their labels"
            raise InvalidInput.must("labels", self.policy.name, wanted, Unquoted("those found in the log"))
        s = np.asarray(parse_numbers(value, field, where))
        if s.shape != (k,) or not np.isfinite(s).all():
            raise BadRow.must(field, where, f"{k} finite {what}, one a label", value)
        return s


def _call_scores(scores: Callable[[Any], Any], X: Any, name: str, what: str) -> Array:
    """Return the scores that a function gives for features.

    It gets a NumPy matrix, SciPy's where rows are sparse, a pair of both where they are mixed, or a Polars frame
    where columns have words or gaps.
    """
    if isinstance(X, list):
        require_extra("logs")
        import polars as pl

        features: Any = pl.DataFrame(X, infer_schema_length=None, strict=False)
    elif X.starts is None:
        features = X.dense
    else:
        require_extra("logs")
        from scipy.sparse import csr_matrix

        sparse = csr_matrix((X.values, X.indices, X.starts), shape=(len(X), X.width))
        features = sparse if X.dense is None else (X.dense, sparse)
    try:
        return np.asarray(scores(features), np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput.must(what, name, "a function of a matrix of features", error) from error
