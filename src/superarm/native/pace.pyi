# Made by buildtools/stubs.py from pace.pyx.
from typing import Any
from superarm.native.averaging import AveragedWeights
from superarm.native.stage import Stage

class Pace(Stage):
    k: int
    width: int
    step_size: float
    forget: float
    def __init__(self, k: int, width: int, step: float, forget: float = ...) -> None: ...
    def learn(self, weights: AveragedWeights, c: Any, indices: Any, values: Any, *, rate: float, sparse_bias: float = ...) -> Any: ...
