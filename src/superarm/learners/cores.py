"""The core of a learner, its algorithm and rule in compiled code: made when the layout of rows is known, and anew when
labels or the first text come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from superarm.data.columns import Columns
from superarm.data.labels import Label
from superarm.data.rows import Layout
from superarm.decisions import Decision
from superarm.learners.locking import takes_turns
from superarm.native.core import Core
from superarm.native.cursor import Cursor
from superarm.native.plain_core import PlainCore
from superarm.native.plain_rule import PlainRuleKernel
from superarm.native.rule import RuleKernel
from superarm.native.scaling import Scaling, StandardScaling, UnitScaling

if TYPE_CHECKING:
    from superarm.learners.learner import Learner

SCALINGS = ("standard", "unit")


class ProvisionalCore(NamedTuple):
    """A core to decide at a cursor before the first row, or the first text; it serves until the learner learns.

    Attributes:
        core: the core.
        made_for: what it depends on.
    """

    core: Core
    made_for: tuple[Any, ...]


def make_scaling(learner: Learner, layout: Layout) -> Scaling:
    """Return how rows of this layout reach the weights, by `Learner.effective_scaling`."""
    d, width = layout.n_dense, layout.n_sparse
    dense, sparse = learner.intercepts
    if learner.effective_scaling == "none":
        return Scaling(d, width)
    if learner.effective_scaling == "unit":
        return UnitScaling(d, width, bias=dense if d else sparse)
    if not max(dense, sparse) < 1.0:
        raise learner.invalid("intercept", "below 1 where columns are standardised", learner.intercept)
    forget, n_numbers = learner.scaling_forget, layout.n_markable
    return StandardScaling(d, width, bias=dense, sparse_bias=sparse, forget=forget, n_numbers=n_numbers)


def kernel_args(learner: Learner) -> dict[str, Any]:
    """Return what a rule that promises a coverage must know of its learner."""
    if not learner.rule.promises_coverage:
        return {}
    return {"full_information": learner.feedback == ("label",), "none_label": learner.inputs.none_index}


def make_kernel(learner: Learner) -> RuleKernel:
    """Return the rule in compiled code, before the first round."""
    return learner.rule.make_kernel(learner.n_labels, learner.seed, **kernel_args(learner))


@takes_turns
def rule_kernel(learner: Learner) -> RuleKernel:
    """Return the rule in compiled code, in its present state."""
    return make_kernel(learner) if learner.core is None else learner.core.kernel


@takes_turns
def ensure_core(learner: Learner) -> Core:
    """Return the core of a learner: made when the layout is known, and anew when rows have got a sparse part."""
    if learner.core is None or _lacks_sparse_part(learner):
        learner.core = _new_core(learner)
    return learner.core


def core_for_cursor(learner: Learner, cursor: Cursor) -> Core:
    """Return the core to decide at a cursor: the learner's, or before the first row, or text, a provisional one."""
    core = learner.core
    if core is None or _lacks_sparse_part(learner):
        learnt = None if core is None else (core, core.n_updates)
        made_for = (learner.inputs.layout, learner.n_labels, learner.set_size, learner.id, learnt)
        if learner.provisional_core is None or learner.provisional_core.made_for != made_for:
            learner.provisional_core = ProvisionalCore(_new_core(learner), made_for)
        core = learner.provisional_core.core
    if not isinstance(cursor, Cursor) or len(cursor.draw_state) != core.kernel.n_draw_state:
        raise learner.invalid("cursor", "one of this learner", cursor)
    return core


def _lacks_sparse_part(learner: Learner) -> bool:
    """Return whether rows have got a sparse part that the core has no room for."""
    layout = learner.inputs.layout
    return learner.core is not None and layout is not None and learner.core.scaling.width != layout.n_sparse


@takes_turns
def add_labels(learner: Learner, labels: int | Sequence[Label]) -> None:
    """Add labels: their names, or how many."""
    inputs, before = learner.inputs, learner.n_labels
    vocabulary = inputs.vocabulary.extended(labels, learner.owner)
    if learner.core is not None and learner.fixed_labels:
        raise learner.invalid("labels", "left as they are: its matrix couples all labels", labels)
    old_vocabulary, old_size = inputs.vocabulary, learner.set_size
    inputs.label_additions.append((learner.round, before))
    inputs.use_labels(vocabulary)
    if inputs.sizes_vary and learner.set_size == before:  # all labels stay all labels
        learner._set_size = learner.n_labels
    if learner.core is None:
        return
    try:
        core = _new_core(learner)
        core.on_labels_added(before)
    except BaseException:  # a learner in plain Python may raise
        inputs.label_additions.pop()
        inputs.use_labels(old_vocabulary)
        learner._set_size = old_size
        raise
    # a thread that has looked the old core up a moment ago waits for the new one
    learner.core.lock = None  # type: ignore[assignment]
    learner.core = core


@takes_turns
def use_columns(learner: Learner, columns: Columns) -> None:
    """Declare the columns of rows; if there can be no core for them, nothing has changed."""
    with rollback_inputs(learner, keep_on_success=True):
        learner.inputs.use_columns(columns)
        ensure_core(learner)


def _new_core(learner: Learner) -> Core:
    """Return a core for the labels and the layout of now, which continues the one that there is."""
    layout, inputs, old = learner.inputs.layout, learner.inputs, learner.core
    assert layout is not None
    if learner.fixed_labels and layout.n_sparse and inputs.columns is not None:
        raise learner.invalid("columns", "without text: its matrix couples all features", inputs.columns)
    core = learner.make_core(layout)
    compiled = not isinstance(core, PlainCore) and not isinstance(core.kernel, PlainRuleKernel)
    plain_rows = layout.n_sparse == layout.n_markable == 0 and not inputs.label_additions
    core.bind(
        decision_class=Decision,
        rule=learner.rule,
        vocabulary=inputs.vocabulary,
        id=learner.id,
        all_labels=inputs.all_labels,
        showable=inputs.showable,
        set_size=learner.set_size,
        feedback=learner.feedback,
        lock=learner.lock if compiled and plain_rows else None,
    )
    if old is not None:
        core.restore(core.state() | old.state())
        core.restore_rounds(old.rounds())
    return core


@contextmanager
def rollback_inputs(learner: Learner, *, keep_on_success: bool) -> Iterator[None]:
    """Take back the layout, names and core that rows bring inside of the block, unless they are kept on success."""
    inputs, core = learner.inputs, learner.core
    before = inputs.columns, inputs.n_features, inputs.layout
    keep = False
    try:
        yield
        keep = keep_on_success
    finally:
        if not keep:
            inputs.columns, inputs.n_features, inputs.layout = before
            learner.core = core
