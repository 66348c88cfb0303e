# Made by buildtools/stubs.py from curves.pyx.
from typing import Any
from superarm.native.averaging import AveragedWeights
from superarm.native.lift import Lift
from superarm.native.stage import Stage

class Curves(Stage):
    k: int
    n_features: int
    lift: Lift
    weights: AveragedWeights
    def __init__(self, k: int, d: int, features: int, seed: Any, bias: float = ..., forget: float = ...) -> None: ...
    @property
    def g(self) -> Any: ...
    def features(self, x: Any) -> Any: ...
    def scores(self, x: Any) -> Any: ...
def gate_slope(q: Any, a: Any, shown: Any, *, hit: bool = ..., label: int = ..., likelihood: Any = ..., false_yes: float = ..., false_no: float = ...) -> Any: ...
