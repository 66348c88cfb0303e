"""SetLogit (and AveragedSoftmax) as an ONNX graph, for rows of plain numbers: `learner.to_onnx(path)`.

    X  (n, d) float    ->    label (n)    probabilities (n, k)    scores (n, k)

The graph has all that a prediction needs: the scaling, which compresses values beyond 5 deviations, the random Fourier
features (cosines and sines), the averages of both weight matrices, and the gate between them; nothing of learning.
Labels have one type there: if some are strings, all are.
"""

from __future__ import annotations

import copy
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._extras import require_extra
from superarm.errors import Unquoted
from superarm.native.cpu import CLIP_LIMIT, CLIP_START, MAX_FEATURE
from superarm.native.scaling import UnitScaling

if TYPE_CHECKING:
    from superarm.learners import Learner

OPSET, IR_VERSION = 17, 8  # of 2022: what runtimes of the last years read


def export(learner: Learner, path: str | PathLike[str]) -> None:
    """Write the graph of a learner's predictions to a file."""
    require_extra("onnx")
    import onnx
    from onnx import TensorProto, helper

    layout, columns = learner.inputs.layout, learner.columns
    named = columns is not None and not columns.is_numeric_only
    if layout is None or layout.n_sparse or layout.n_markable or named:
        got = "no row yet" if layout is None else layout.kind
        if named:
            got = "text, words, dates or missing values"
        wanted = "plain numbers without missing values, to be exported to ONNX"
        raise learner.invalid("rows", wanted, Unquoted(got))
    graph = Graph()
    core = copy.deepcopy(learner).ensure_core()  # the original's caches stay as they are
    scores = _scores(graph, core, layout.n_dense)
    graph.node("Identity", scores, to="scores")
    graph.node("Softmax", "scores", to="probabilities", axis=1)
    showable = learner.inputs.showable
    best = graph.node("ArgMax", graph.node("Gather", "scores", showable, axis=1), axis=1, keepdims=0)
    names = np.array(learner.vocabulary.of_one_type().all())[showable]
    has_text_names = names.dtype.kind == "U"
    graph.node("Gather", names.astype(object) if has_text_names else names, best, to="label", axis=0)
    k, number = learner.n_labels, TensorProto.FLOAT
    name_type = TensorProto.STRING if has_text_names else TensorProto.INT64
    outputs = [
        helper.make_tensor_value_info("label", name_type, ["n"]),
        helper.make_tensor_value_info("probabilities", number, ["n", k]),
        helper.make_tensor_value_info("scores", number, ["n", k]),
    ]
    rows = helper.make_tensor_value_info("X", number, ["n", layout.n_dense])
    built = helper.make_graph(graph.nodes, learner.owner, [rows], outputs, graph.constants)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(built, producer_name="superarm", ir_version=IR_VERSION, opset_imports=[opset])
    onnx.checker.check_model(model)
    onnx.save(model, path)


class Graph:
    """The nodes and constants of a graph; each gets a unique name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operator: str, *inputs: Any, to: str | None = None, **attributes: Any) -> str:
        """Add a node, whose inputs are names of other nodes or constants, and return its name."""
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

    def squared_norm(self, rows: str) -> str:
        """Return the squared norm of each row."""
        return self.node("ReduceSumSquare", rows, axes=[1], keepdims=1)

    def divide_where_positive(self, rows: str, length: str, total: str) -> str:
        """Return rows divided by ``length``, except where ``total`` is 0."""
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
    return graph.node(
        "Add",
        linear,
        graph.node("MatMul", _random_features(graph, core.curves.random_features, x, d), weights),
    )


def _scaled(graph: Graph, scaling: Any) -> str:
    """Return scaled rows, by native/scaling.pyx: UnitScaling or StandardScaling."""
    if isinstance(scaling, UnitScaling):
        total = graph.squared_norm("X")
        return graph.divide_where_positive("X", graph.node("Sqrt", total), total)
    state = scaling.state()
    v = graph.node("Mul", graph.node("Sub", "X", state["mean"]), state["inverse"])
    size = graph.node("Abs", v)
    tail = graph.node("Div", CLIP_START * (CLIP_LIMIT - CLIP_START), graph.node("Max", size, CLIP_START))
    compressed = graph.node("Mul", graph.node("Sign", v), graph.node("Sub", CLIP_LIMIT, tail))
    z = graph.node("Where", graph.node("Greater", size, CLIP_START), compressed, v)
    return _scale_to_length(graph, z, scaling.mean_squared_norm, (1.0 - scaling.bias**2) ** 0.5)


def _scale_to_length(graph: Graph, rows: str, typical: float, length: float) -> str:
    """Return rows whose length is the geometric mean of ``length`` and their own, relative to a typical square."""
    total = graph.squared_norm(rows)
    root = graph.node("Sqrt", total)
    if typical > 0.0:
        root = graph.node("Sqrt", graph.node("Mul", root, float(typical) ** 0.5))
    return graph.divide_where_positive(graph.node("Mul", rows, float(length)), root, total)


def _random_features(graph: Graph, features: Any, x: str, d: int) -> str:
    """Return the random features of scaled rows (native/random_features.pyx); phases count turns of the circle."""
    rows = np.eye(d, dtype=np.float32)
    turns_of_columns = np.stack([features.projections(row) for row in rows]) * (
        features.bandwidth * features.turns_per_unit / features.projection_scale
    )
    t = graph.node("MatMul", x, turns_of_columns)
    raw = graph.node("Concat", _sine(graph, graph.node("Add", t, 0.25)), _sine(graph, t), axis=1)
    state = features.state()
    standardised = graph.node("Mul", graph.node("Sub", raw, state["mean"]), state["inverse"])
    clipped = graph.node("Clip", standardised, np.float32(-MAX_FEATURE), np.float32(MAX_FEATURE))
    return _scale_to_length(graph, clipped, features.mean_squared_norm, 1.0)


def _sine(graph: Graph, turns: str) -> str:
    """Return sin(2 pi turns) as native/c/random_features.h computes it: a parabola and one correction."""
    t = graph.node("Sub", turns, graph.node("Floor", graph.node("Add", turns, 0.5)))
    parabola = graph.node("Mul", t, graph.node("Sub", 8.0, graph.node("Mul", 16.0, graph.node("Abs", t))))
    return graph.node(
        "Mul", parabola, graph.node("Add", 0.775, graph.node("Mul", 0.225, graph.node("Abs", parabola)))
    )
