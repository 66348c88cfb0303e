"""SetLogit (and AveragedSoftmax) as an ONNX graph, for rows of plain numbers: `learner.to_onnx(path)`.

    X  (n, d) float    ->    label (n)    probabilities (n, k)    scores (n, k)

All that a prediction is made of is in the graph: the scaling with its bend beyond 5 deviations, both banks of waves,
the averages of both matrices, and the gate between them. What learning needs is not.
"""

from __future__ import annotations

import copy
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._extras import need
from superarm.native.scaling import Unit

if TYPE_CHECKING:
    from superarm.learners import Learner

OPSET, IR = 17, 8  # of 2022: what runtimes of the last years read
FAR, MOST = 5.0, 7.5  # native/c/scaling.h: |v| > 5 becomes 7.5 - 12.5 / |v|
CLIP = 5.0  # native/c/curves.h: of waves


def export(learner: Learner, path: str | PathLike[str]) -> None:
    """Write the graph to a file."""
    need("onnx")
    import onnx
    from onnx import TensorProto, helper

    layout, columns = learner.inputs.layout, learner.columns
    named = columns is not None and not columns.is_plain
    if layout is None or layout.width or layout.numbers or named:
        got = (
            "no row yet"
            if layout is None
            else "text, words, dates or missing values"
            if named
            else layout.kind
        )
        raise learner.invalid("rows", "plain numbers without missing values, to be exported to ONNX", got)
    graph = Graph()
    core = copy.deepcopy(learner).ensure_core()  # what the original has at hand stays as it is
    scores = _scores(graph, core, layout.d)
    graph.node("Identity", scores, to="scores")
    graph.node("Softmax", "scores", to="probabilities", axis=1)
    showable = learner.inputs.showable
    best = graph.node("ArgMax", graph.node("Gather", "scores", showable, axis=1), axis=1, keepdims=0)
    names = np.array([learner.label_set.all()[i] for i in showable])
    graph.node(
        "Gather", names.astype(object) if names.dtype.kind in "US" else names, best, to="label", axis=0
    )

    k, kinds = learner.n_labels, {"f": TensorProto.FLOAT, "U": TensorProto.STRING, "i": TensorProto.INT64}
    outputs = [
        helper.make_tensor_value_info("label", kinds[names.dtype.kind], ["n"]),
        helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", k]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", k]),
    ]
    built = helper.make_graph(
        graph.nodes,
        learner.owner,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", layout.d])],
        outputs,
        graph.constants,
    )
    model = helper.make_model(
        built,
        producer_name="superarm",
        ir_version=IR,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model)
    onnx.save(model, path)


class Graph:
    """Nodes and constants, each with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operator: str, *inputs: Any, to: str | None = None, **attributes: Any) -> str:
        """Add a node; an input is the name of another one, or a constant. Its own name."""
        from onnx import helper

        names = [given if isinstance(given, str) else self._constant(given) for given in inputs]
        name = to or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [name], **attributes))
        return name

    def _constant(self, value: Any) -> str:
        from onnx import numpy_helper

        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        array = array.astype(np.int64) if array.dtype.kind == "i" else array
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def squares(self, rows: str) -> str:
        """The squared length of each row."""
        return self.node("ReduceSumSquare", rows, axes=[1], keepdims=1)

    def divided(self, rows: str, length: str, total: str) -> str:
        """Rows over a length, where their total is not 0."""
        is_positive = self.node("Greater", total, np.float32(0.0))
        return self.node("Div", rows, self.node("Where", is_positive, length, np.float32(1.0)))


def _scores(graph: Graph, core: Any, d: int) -> str:
    x = _scaled(graph, core.scaling)
    average, _ = core.weights.average()
    bias = core.scaling.bias * average[:, d]
    linear = graph.node("Add", graph.node("MatMul", x, np.ascontiguousarray(average[:, :d].T)), bias)
    if not core.curves.n_features:
        return linear
    average, _ = core.curves.weights.average()
    weights = np.ascontiguousarray(core.curves.g * average[:, : core.curves.n_features].T)
    return graph.node("Add", linear, graph.node("MatMul", _waves(graph, core.curves.lift, x, d), weights))


def _scaled(graph: Graph, scaling: Any) -> str:
    """native/scaling.pyx: Unit, or Standard."""
    if isinstance(scaling, Unit):
        total = graph.squares("X")
        return graph.divided("X", graph.node("Sqrt", total), total)
    state = scaling.state()
    v = graph.node("Mul", graph.node("Sub", "X", state["mean"]), state["inverse"])
    size = graph.node("Abs", v)
    far = graph.node("Sub", MOST, graph.node("Div", FAR * (MOST - FAR), graph.node("Max", size, FAR)))
    bent = graph.node("Mul", graph.node("Sign", v), far)
    z = graph.node("Where", graph.node("Greater", size, FAR), bent, v)
    return _half_way(graph, z, state["seen"][1], (1.0 - scaling.bias**2) ** 0.5)


def _half_way(graph: Graph, rows: str, typical: float, length: float) -> str:
    """Rows as long as half-way (geometrically) between ``length`` and what they are, measured by a typical square."""
    total = graph.squares(rows)
    root = graph.node("Sqrt", total)
    if typical > 0.0:
        root = graph.node("Sqrt", graph.node("Mul", root, float(typical) ** 0.5))
    return graph.divided(graph.node("Mul", rows, float(length)), root, total)


def _waves(graph: Graph, lift: Any, x: str, d: int) -> str:
    """native/lift.pyx: the curved features of scaled rows, in turns of the circle."""
    rows = np.eye(d, dtype=np.float32)
    turns = np.stack([lift.projections(row) for row in rows]) * (lift.bandwidth * lift.turns / lift.stretch)
    t = graph.node("MatMul", x, turns)
    raw = graph.node("Concat", _wave(graph, graph.node("Add", t, 0.25)), _wave(graph, t), axis=1)
    state = lift.state()
    phi = graph.node("Mul", graph.node("Sub", raw, state["mean"]), state["inverse"])
    clipped = graph.node("Clip", phi, np.float32(-CLIP), np.float32(CLIP))
    return _half_way(graph, clipped, state["seen"][2], 1.0)


def _wave(graph: Graph, turns: str) -> str:
    """sin(2 pi turns) as native/c/curves.h has it: a parabola and one correction."""
    t = graph.node("Sub", turns, graph.node("Floor", graph.node("Add", turns, 0.5)))
    bow = graph.node("Mul", t, graph.node("Sub", 8.0, graph.node("Mul", 16.0, graph.node("Abs", t))))
    return graph.node("Mul", bow, graph.node("Add", 0.775, graph.node("Mul", 0.225, graph.node("Abs", bow))))
