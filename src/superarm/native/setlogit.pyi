# Made by buildtools/stubs.py from setlogit.pyx.
from typing import Any
from superarm.native.averaging import AveragedWeights
from superarm.native.core import Core
from superarm.native.curves import Curves
from superarm.native.pace import Pace
from superarm.native.parts import Parts
from superarm.native.rule import Rule
from superarm.native.scaling import Scaling

class SetLogitCore(Core):
    weights: AveragedWeights
    curves: Curves
    pace: Pace
    parts: Parts
    mixed_rows: bool
    step: float
    sparse_step: float
    share: float
    revive: float
    none: int
    def __init__(self, *, k: int, d: int, width: int, seed: Any, scaling: Scaling, rule: Rule, step: float, sparse_step: float, share: float, revive: float, curves: int, bias: float, forget: float = ..., false_yes: float = ..., false_no: float = ..., none: int = ..., sees_label: bool = ...) -> None: ...
    def grown(self, before: int) -> Any: ...
def posterior(p: Any, shown: Any = ..., *, hit: bool = ..., likelihood: Any = ..., credit: Any = ..., revive: float = ..., none: int = ..., false_yes: float = ..., false_no: float = ...) -> Any: ...
