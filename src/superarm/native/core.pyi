# Made by buildtools/stubs.py from core.pyx.
from typing import Any
from numpy.typing import NDArray
from superarm.native.ledger import Ledger
from superarm.native.linear import Weights
from superarm.native.rows import RowBlock
from superarm.native.rule import Rule
from superarm.native.scaling import Scaling
from superarm.native.stage import Stage

class Cursor:
    round: int
    rule_state: Any
    def __init__(self, round: int, rule_state: Any = ...) -> None: ...
    def to_dict(self) -> dict[str, Any]: ...
    @classmethod
    def from_dict(cls, data: Any) -> Cursor: ...
    def copy(self) -> Cursor: ...
    def __eq__(self, other: object) -> bool: ...
    def __repr__(self) -> str: ...
    def __reduce__(self) -> Any: ...
class DecisionBase:
    x: Any
    row: Any
    sets: Any
    size: int
    eligible_: Any
    log_ordered_propensity: float
    log_propensity: float
    belief: float
    draw_log: Any
    rule_: Any
    round: Any
    learner: Any
    taught: Any
    label_set: Any
class Core(Stage):
    k: int
    scaling: Scaling
    rule: Rule
    ledger: Ledger
    round: int
    sees_label: bool
    decision_class: Any
    label_set: Any
    id: Any
    explore_rule: Any
    everything: Any
    can_show: Any
    set_size: int
    fast: bool
    takes_hit: bool
    def __init__(self, k: int, scaling: Scaling, rule: Rule) -> None: ...
    def prepare(self, n: int, m: int) -> None: ...
    def cursor(self) -> Cursor: ...
    def decide_fast(self, x: Any, at: Any = ...) -> Any: ...
    def decide(self, row: Any, x: Any, eligible: Any, m: int, at: Cursor) -> Any: ...
    def advance(self, log: NDArray[Any], log_ends: NDArray[Any], first: int, last: int) -> Any: ...
    def update_fast(self, decision: Any, hit: Any) -> Any: ...
    def update(self, decision: DecisionBase, row: Any, eligible: Any, sets: Any, size: int, hit: bool, label: int, likelihood: Any) -> Any: ...
    def scores(self, rows: RowBlock, out: NDArray[Any]) -> Any: ...
class LinearCore(Core):
    weights: Weights
    def __init__(self, k: int, scaling: Scaling, rule: Rule) -> None: ...
