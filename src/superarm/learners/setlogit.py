"""SetLogit: the likelihood of one bit, online, with nothing to tune. (docs/research.md: how it was found)

native/setlogit.pyx has the model and its update, explore/runner_up.py how sets are chosen.
"""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any, Unpack

from superarm._types import Array
from superarm.data.cells import to_python
from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.decisions import Decision
from superarm.learners.families import AnyRuleLearner, AnyRuleParams
from superarm.losses import softmax
from superarm.native.core import Core
from superarm.native.setlogit import SetLogitCore
from superarm.parameters import check_int, check_number, check_share

AVERAGE_SHARE_DENSE, AVERAGE_SHARE_SPARSE = 0.6, 0.5  # in the posterior; rows with both parts: as dense ones
REVIVE_DENSE, REVIVE_SPARSE, REVIVE_MIXED = 0.02, 0.2, 0.1  # (benchmarks/mixed.py)
STEP_WITH_CURVES, STEP_DENSE, STEP_SPARSE = 3.0, 4.0, 0.67  # sparse: times sqrt(k)
CURVES, CURVES_TRAINED = 1024, 4096  # random features; the second number where several passes pay for it
MAX_LABELS_WITH_CURVES = 32_768  # labels that may have them: 256 MiB
BIAS_DENSE, BIAS_SPARSE = 0.1**0.5, 0.02**0.5


class LikelihoodParams(AnyRuleParams, total=False):
    """What a learner passes on to `LikelihoodLearner`."""

    step: float | None
    curves: int | None


class LikelihoodLearner(AnyRuleLearner):
    """The model and the update of SetLogit, for learners of bits and for those of labels.

    Args:
        intercept: a number in [0, 1), whose square is the share of the constant feature; True chooses it.
        scaling: ``"standard"`` (or ``None``), each column by its own mean and spread, learnt online; ``"unit"``, rows
            of length 1.
        step: the step size of the dense part, its curves too; ``None`` chooses it: 3 with curves, 4 without.
            The sparse part has 0.67 sqrt(k), or for rows without a dense part what is given here.
        curves: how many random features stand beside those of the dense part, an even number; 0 is the
            linear model, ``None`` is 1024 (8 KiB a label; several passes of `train`: up to 4096; above
            32,768 labels: none). The sparse part stays linear.
    """

    state_version = 5
    scores_are_log_probabilities = True
    default_scaling = "standard"
    core: SetLogitCore | None
    step: float | None
    curves: int | None

    def __init__(
        self, *, step: float | None = None, curves: int | None = None, **common: Unpack[AnyRuleParams]
    ) -> None:
        super().__init__(**common)
        self.step = None if step is None else check_number("step", self.owner, step, 0.0)
        self.curves = None if curves is None else check_int("curves", self.owner, curves, 0)
        if self.curves is not None and self.curves % 2:
            raise self.invalid("curves", "an even number (as many cosines as sines), or None", curves)
        if self.intercept is not True and not self.intercept < 1.0:
            wanted = "True, False or a number in [0, 1): its square is the share of the constant feature"
            raise self.invalid("intercept", wanted, self.intercept)

    @property
    def n_random_features(self) -> int:
        """How many random features there are beside those of the row; 0 for sparse rows."""
        layout = self.inputs.layout
        if layout is not None and layout.n_dense == 0:
            return 0
        if self.curves is not None:
            return self.curves
        additions = self.inputs.label_additions
        _, n_labels = additions[0] if additions else (0, self.n_labels)  # labels added later change nothing
        return CURVES if n_labels <= MAX_LABELS_WITH_CURVES else 0

    @property
    def _step(self) -> float:
        """The step size of the dense part."""
        return self.step or (STEP_WITH_CURVES if self.n_random_features else STEP_DENSE)

    @property
    def intercepts(self) -> tuple[float, float]:
        return (BIAS_DENSE, BIAS_SPARSE) if self.intercept is True else super().intercepts

    def make_core(self, layout: Layout) -> Core:
        d, width = layout.n_dense, layout.n_sparse
        if d and not self.n_random_features and self.curves is None:
            warnings.warn(
                f"{self.owner} stays linear: {CURVES} random features for each of {self.n_labels} labels "
                f"take {self.n_labels * CURVES * 8 / 2**30:.1f} GiB; curves={CURVES} takes them all the same",
                stacklevel=2,
            )
        sparse_step = STEP_SPARSE * self.n_labels**0.5
        false_no, false_yes = self.answer_noise
        return SetLogitCore(
            **self.core_args(layout),
            seed=self.seed,
            step=self._step,
            sparse_step=sparse_step if d or not self.step else self.step,
            average_share=AVERAGE_SHARE_DENSE if d else AVERAGE_SHARE_SPARSE,
            revive=REVIVE_MIXED if layout.mixed else REVIVE_SPARSE if width else REVIVE_DENSE,
            curves=self.n_random_features,
            bias=self.intercepts[0],
            forget=self.scaling_forget,
            false_yes=false_yes,
            false_no=false_no,
            none_label=-1 if self.inputs.none_index is None else self.inputs.none_index,
        )

    def prepare_passes(self, passes: int) -> None:
        """Take more curves where several passes pay for them."""
        affordable = self.n_labels <= MAX_LABELS_WITH_CURVES // 4
        if passes > 1 and self.core is None and self.curves is None and affordable:
            self.curves = CURVES_TRAINED

    def anneal(self, remaining: float) -> None:
        """Shrink the step of the dense part to nothing; steps of the sparse part shrink anyway."""
        if self.core is not None:
            self.core.step = self._step * remaining

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every label for every row of X: a column for each, none_label's among them."""
        return softmax(self.scores(X))

    def to_onnx(self, path: str | PathLike[str]) -> None:
        """Write what it predicts for rows of plain numbers to the file ``path``, as an ONNX graph (extra ``onnx``)."""
        from superarm.onnx import export

        export(self, path)


class SetLogit(LikelihoodLearner):
    """Maximum likelihood from bits about sets: the learner to start with. Nothing needs tuning.

    Args:
        forget: the least weight of a new round, for streams that drift (0.001 remembers about 1000
            rounds); 0 never forgets.
        false_no: the probability of a "no" although the right label was shown.
        false_yes: the probability of a "yes" although it was not.
        none_label: a label that is never shown and never predicted, but may be the truth: most people
            click nothing, or none of the labels fits. One of ``labels``, or its index.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(labels=["ant", "bee", "cat", "dog"], n_features=2, set_size=2)
    >>> decision = learner.decide([1.0, 0.0])
    >>> decision.labels, round(decision.propensity, 2)
    (['cat', 'dog'], 0.17)
    >>> learner.update(decision, hit=False)
    """

    name = "set-logit"
    feedback = ("hit", "label", "likelihood")

    def __init__(
        self,
        *,
        forget: float = 0.0,
        false_no: float = 0.0,
        false_yes: float = 0.0,
        none_label: Label | None = None,
        **common: Unpack[LikelihoodParams],
    ) -> None:
        self.forget = self.scaling_forget = check_share("forget", self.owner, forget, 0.5)
        self.false_no = check_share("false_no", self.owner, false_no, 0.99)
        self.false_yes = check_share("false_yes", self.owner, false_yes, 0.99)
        if self.false_no + self.false_yes >= 1.0:
            raise self.invalid("false_no", "below 1 - false_yes: else a yes means no", false_no)
        self.answer_noise = self.false_no, self.false_yes
        super().__init__(**common)
        self.none_label = to_python(none_label)
        if none_label is not None:
            index = self.vocabulary.index(none_label)
            if index is None:
                raise self.invalid("none_label", "one of the labels", none_label)
            self.inputs.use_labels(self.vocabulary, index)

    def learns_from(self, decision: Decision) -> bool:
        return True
