"""Learner: deciding, learning and predicting, one by one and many at once. Its parts:

inputs (inputs.py): what rows and labels mean; rule (superarm.explore): how sets are chosen; core (superarm.native):
the algorithm and the rule in compiled code, and the answered rounds. base.py is what a subclass defines
(docs/extend.md), answers.py and batch_answers.py say which answers can be taken, failures.py why scores or an update
failed, model_files.py how learners are copied and saved.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any, BinaryIO, Self

import numpy as np

from superarm._types import Array
from superarm.data.cells import json_row
from superarm.data.labels import Label, LabelVocabulary
from superarm.data.rows import stack
from superarm.data.tables import named_row
from superarm.decisions import Decision, Decisions
from superarm.decisions.decisions import DrawnSets, EligibleLabels
from superarm.explore.cover import check_coverage
from superarm.explore.rule import Rule
from superarm.learners import answers, batch_answers, failures, model_files
from superarm.learners.base import SCALINGS, LearnerBase
from superarm.losses import softmax
from superarm.native import loops
from superarm.native.core import NOT_FAST, Cursor
from superarm.parameters import Parametrised, check_int

# what a subclass may define or use: of LearnerBase, all but these
FOR_SUBCLASSES = {name for name in vars(LearnerBase) if not name.startswith("_")} - {
    *("name", "feedback", "params", "nondefault_params", "effective_scaling", "labels", "n_labels"),
    *("n_features", "columns", "column_warnings", "metadata", "round", "answered", "set_size", "id"),
    *("rule", "coverage", "coverage_at", "add_labels", "use_columns"),
}


class Learner(LearnerBase):
    """The API of every learner.

    Args:
        n_labels: the number of labels k; or give ``labels``.
        labels: the names of the labels (strings or whole numbers), kept with the model.
        n_features: the length d of a row, or a pair (dense, sparse) for rows with both parts; left out, the
            first row tells it (and may have names).
        set_size: how many labels to show, 1 <= m < k; 1 by default.
        seed: every draw is a pure function of (seed, round, position).
        intercept: give every label a constant term: a further feature that is always 0.1 (or the
            number given). Beside rows of length 1 a constant of 1 would be as loud as all the rest.
        scaling: how rows reach the weights: ``"unit"``, of length 1; ``"standard"``, each column by its own mean and
            spread, learnt online (native/scaling.pyx); ``None``: unit, but standard for rows with names.

    A subclass sets the class variables and defines `make_core` and `make_rule`; parameters of its own are
    kept as attributes of the same name (docs/extend.md). ``core`` is ``None`` before the first row.
    """

    _hidden_from_tab = Parametrised._hidden_from_tab | FOR_SUBCLASSES | {"core", "inputs", "answer_noise"}

    def __init__(
        self,
        *,
        n_labels: int | None = None,
        labels: Sequence[Label] | None = None,
        n_features: int | tuple[int, int] | None = None,
        set_size: int | None = None,
        seed: int = 0,
        intercept: bool | float = True,
        scaling: str | None = None,
    ) -> None:
        vocabulary = LabelVocabulary.from_params(n_labels, labels, self.owner)
        self.inputs = self.schema_class(self.owner, vocabulary, n_features, single_label=self.single_label)
        self.core = None
        self._set_size = self.inputs.check_set_size(1 if set_size is None else set_size)
        self.id = uuid.uuid4().hex[:16]
        self.seed = check_int("seed", self.owner, seed, 0)
        self.intercept = intercept
        if not isinstance(intercept, int | float) or not 0.0 <= intercept <= 1e6:
            raise self.invalid("intercept", "True, False or a number from 0 to 10^6", intercept)
        self.scaling = scaling
        if scaling not in (None, *SCALINGS):
            raise self.invalid("scaling", f"one of {', '.join(SCALINGS)}, or None", scaling)

    # ------------------------------------------------------------ one round

    def decide(
        self,
        x: Any,
        *,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
        cursor: Cursor | None = None,
    ) -> Decision:
        """Choose a set of labels to show for x.

        Args:
            x: a dense row; a sparse one, as a SciPy row or a pair (indices, values); one with both parts, a
                `superarm.Row`; or one with names, as a dict or a data frame's row (data/columns.py).
            eligible: the only labels that may be shown this time.
            set_size: how many to show this time; with a promised coverage, the most.
            coverage: another promise, for this time: a threshold is kept for each that is asked for.
            cursor: decide with the model of now at this cursor, which is moved; the learner stays as it is,
                until `advance`.
        """
        if eligible is None and set_size is None and coverage is None and self.core is not None:
            decision: Decision | None = self.core.decide_fast(x, cursor)
            if decision is not None:
                return decision
        numbers = self.inputs.showable if eligible is None else self.inputs.eligible_numbers(eligible)
        m = self._set_size if set_size is None else self.inputs.check_set_size(set_size)
        with self._row_effects(keep=cursor is None):
            named = named_row(x)
            row = self.inputs.encode_row(x if named is None else named)
            core = self.ensure_core() if cursor is None else self.core_for_cursor(cursor)
            shown = row if named is None else json_row(named)
            decision = self._with_coverage(core, coverage, core.decide, row, shown, numbers, m, cursor)
            if decision is None:
                raise failures.score_error(self, row)
        if cursor is None and self.inputs.column_warnings:
            self.inputs.warn()
        return decision

    def update(
        self,
        decision: Decision,
        *,
        hit: bool | None = None,
        label: Label | None = None,
        likelihood: Any = None,
    ) -> None:
        """Learn from the answer to a decision: now or days later, in any order, once.

        Args:
            decision: what `decide` gave, or `Decision.given`.
            hit: whether the right label was among the shown ones.
            label: the right label, where the world names it.
            likelihood: how probable all that is known is under each label: k numbers.
        """
        status, core = NOT_FAST, self.core
        if label is None and likelihood is None and core is not None:
            status = core.update_fast(decision, hit)
        if status == NOT_FAST:
            answers.learn(self, answers.checked_answer(self, decision, hit, label, likelihood))
            core = self.core
        elif status:
            raise failures.update_error(self, status, decision.row, decision.round)
        if self.rule.sizes_vary or core.rule.failed:
            self.rule.report_problem(core.rule)

    def cursor(self) -> Cursor:
        """Return a copy of its position: the next round, and the part of its rule's state that deciding moves."""
        return Cursor.of(self._rule_kernel, self.round)

    def advance(self, decision: Decision) -> None:
        """Move as if it had made this decision of its own at a cursor: what `decide` does, but for choosing the set.

        Decisions may come in any order of rounds, each of them once.
        """
        if not isinstance(decision, Decision) or decision.learner != self.id or decision.round is None:
            raise self.invalid("decision", f"its own (learner {self.id})", decision)
        if self.core is None or self.columns is not None:
            self.inputs.encode_row(decision.x)
        core, log = self.ensure_core(), np.frombuffer(answers.draw_log_of(self, decision))
        if not core.count_round(decision.round):
            raise self.invalid("decision", "one that it has not made or taken before", decision)
        core.advance(log)

    @contextmanager
    def _row_effects(self, *, keep: bool = True) -> Iterator[None]:
        """Keep the layout, names and core that rows bring inside of the block, unless it fails or ``keep`` is false."""
        core, checkpoint = self.core, self.inputs.checkpoint()
        try:
            yield
        except Exception:
            keep = False
            raise
        finally:
            if not keep:
                self.inputs.rollback(checkpoint)
                self.core = core

    # ------------------------------------------------------------ many rounds

    def decide_many(
        self,
        X: Any,
        *,
        eligible: Iterable[Label] | Sequence[Iterable[Label]] | None = None,
        set_size: int | None = None,
        coverage: float | None = None,
    ) -> Decisions:
        """Choose a set for every row of X: the same bits as `decide` row by row, in one compiled loop.

        Args:
            X: a matrix, dense or sparse; a pair of both; or a data frame.
            eligible: the only labels that may be shown: one list, or a list for each row.
            set_size: how many to show; with a promised coverage, the most.
            coverage: another promise, for this time.
        """
        m = self._set_size if set_size is None else self.inputs.check_set_size(set_size)
        with self._row_effects():
            rows = self.inputs.encode_owned_rows(X)
            core, eligible_labels = self.ensure_core(), EligibleLabels(self.inputs.showable)
            if eligible is not None:
                eligible_labels = self.inputs.eligible_by_row(eligible, len(rows), m)
            cursor = core.cursor()
            done, draws = self._with_coverage(
                core, coverage, loops.decide_many, core, rows, eligible_labels, m, cursor
            )
            if done < len(rows):
                raise failures.score_error(self, rows.row(done))
        rounds = np.arange(core.round, cursor.round)
        core.move_to(cursor)
        return Decisions(
            rows=rows,
            draws=DrawnSets(**draws),
            eligible=None if eligible_labels.indices is self.inputs.all_labels else eligible_labels,
            rule=self.rule,
            rounds=rounds,
            learner=self.id,
            vocabulary=self.vocabulary,
        )

    def update_many(
        self, decisions: Decisions | Sequence[Decision], hits: Any = None, *, labels: Any = None
    ) -> int:
        """Learn from the answers to many decisions, in their order: the same bits as one by one.

        Args:
            decisions: what `decide_many` gave, or a part of it; or a list of Decision objects, also of stored
                and given ones.
            hits: for each, whether the right label was among the shown ones; ``None`` where no answer came.
            labels: for each, the right label, where the world names it; or ``None``.

        Returns:
            How many answers were learnt from.
        """
        count = batch_answers.update_many(self, decisions, hits, labels)
        if count:
            self.rule.report_problem(self.core.rule)
        return count

    def run(self, X: Any, y: Any, visit: Any = None, *, signed_sizes: Array | None = None) -> Array:
        """Run rounds over rows of X, answered from y, in one compiled loop.

        The same bits as `decide` and `update` round by round.

        Args:
            X: a matrix, or a data frame.
            y: label numbers 0..k-1; they answer and count, and reach no learner of bits.
            visit: the rows to go through, in this order; all of them by default.
            signed_sizes: an array of intp that gets how many labels each round showed, less than 0 if the right one
                was not among them.

        Returns:
            How many rounds had a wrong top label, a miss of the top set, a miss of the shown set; and how many labels
            were shown in all.
        """
        with self._row_effects():
            rows = self.inputs.encode_rows(X)
            y, visit = self.inputs.check_run(len(rows), y, visit, signed_sizes)
            core, counts = self.ensure_core(), np.zeros(4, np.int64)
            before = core.round
            done, status = loops.run(core, rows, y, visit, counts, signed_sizes)
            if status:
                error = failures.update_error(self, status, rows.row(visit[done]), before + done)
                if done == 0:  # nothing stays of the first row
                    raise error
        if status:
            raise error
        self.rule.report_problem(core.rule)
        return counts

    # ------------------------------------------------------------ predictions

    def scores(self, X: Any) -> Array:
        """Return the scores of all labels for every row of X, by which labels are ranked."""
        with self._row_effects(keep=False):
            rows = self.inputs.encode_rows(X, grow=False)
            out = np.zeros((len(rows), self.n_labels), np.float32)
            self.ensure_core().scores(rows, out)
            fine = np.isfinite(out).all(axis=1)
            if not fine.all():
                raise failures.score_error(self, rows.row(int(np.flatnonzero(~fine)[0])))
        return out

    def rank(self, x: Any) -> list[Label]:
        """Return all labels that can be shown for one row ``x``, best first."""
        with self._row_effects(keep=False):
            row = self.inputs.encode_row(x, grow=False)
            return self.vocabulary.decode(self._ranked(stack([row], self.inputs.layout))[0])

    def predict(self, X: Any) -> Array:
        """Return the best label for every row of X."""
        showable = self.inputs.showable
        return self.vocabulary.decode_array(showable[self.scores(X)[:, showable].argmax(axis=1)])

    def predict_set(
        self, X: Any, set_size: int | None = None, *, coverage: float | None = None
    ) -> Array | list[Array]:
        """Return the best ``set_size`` labels for every row of X, best first.

        Args:
            X: a matrix, or a data frame.
            set_size: how many; with a coverage, the most.
            coverage: as many as this coverage needs, by its threshold as it is: a list of arrays. The default
                of a learner with a promise is its own, unless a size is asked for. Without a promise: as many
                as its probabilities need to sum up to it, which is as right as these (docs/coverage.md).
        """
        promises, showable = self.rule.promises_coverage, self.inputs.showable
        size = self.set_size if set_size is None else self.inputs.check_set_size(set_size)
        if coverage is None and (set_size is not None or not promises):
            return self.vocabulary.decode_array(self._ranked(X)[:, :size])
        p = softmax(self.scores(X)[:, showable])
        order = np.argsort(-p, axis=1, kind="stable")
        if promises or not hasattr(self, "predict_proba"):
            sizes = (p >= self.coverage_at(coverage).edge).sum(axis=1)
        else:
            sums = np.take_along_axis(p, order, axis=1).cumsum(axis=1)
            sizes = 1 + (sums < check_coverage(coverage, self.owner)).sum(axis=1)
            size = len(showable) if set_size is None else size
        sizes = sizes.clip(1, size)
        return [self.vocabulary.decode_array(showable[row[:n]]) for row, n in zip(order, sizes, strict=True)]

    def _ranked(self, X: Any) -> Array:
        """Return the numbers of the labels that can be shown, best first, for every row of X."""
        showable = self.inputs.showable
        return showable[np.argsort(-self.scores(X)[:, showable], axis=1, kind="stable")]

    # ------------------------------------------------------------ copies and files, and how it is shown

    def with_params(self, **params: Any) -> Self:
        """Return a copy with other parameters; all that it has learnt stays."""
        return model_files.copy_with_params(self, params)

    def with_new_rule(self, **params: Any) -> Self:
        """Return a copy with other parameters, whose rule begins anew; all else that it has learnt stays."""
        return model_files.copy_with_params(self, params, with_rule=False)

    def resume_from_snapshot(self, old: Self) -> Self:
        """Return a copy of ``old``, a snapshot of this learner, with the rounds, answers, labels and columns of now."""
        return model_files.resume_from_snapshot(self, old)

    def save(self, path: str | PathLike[str] | BinaryIO) -> None:
        """Write the model to a file, by its path or open for writing bytes; loaded again, it goes on bit for bit."""
        model_files.save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        return model_files.pickle_state(self)

    def __setstate__(self, values: dict[str, Any]) -> None:
        model_files.unpickle(self, values)

    def current_rule(self) -> Rule:
        """Return a copy of its rule in its present state, for use without the learner, on any scores."""
        return self.rule.with_state_of(self._rule_kernel, self.round, **self._traits)

    def __repr__(self) -> str:
        texts = {name: repr(value) for name, value in self.nondefault_params.items()}
        if self.labels is not None:
            few, last = list(self.labels[:3]), self.labels[-1]
            texts["labels"] = (
                repr(list(self.labels)) if len(self.labels) <= 6 else f"{repr(few)[:-1]}, … {last!r}]"
            )
        return f"{self.owner}({', '.join(f'{name}={text}' for name, text in texts.items())})"

    def _repr_html_(self) -> str:
        from superarm.learners.html import learner_html

        return learner_html(self)
