# Made by buildtools/stubs.py from averaging.pyx.
from typing import Any
from superarm.native.stage import Stage

class AveragedWeights(Stage):
    k: int
    d: int
    width: int
    stride: int
    forget: float
    def __init__(self, k: int, d: int, width: int, forget: float = ...) -> None: ...
    def scores(self, x: Any = ..., indices: Any = ..., values: Any = ..., *, bias: float = ..., sparse_bias: float = ...) -> Any: ...
    def learn(self, c: Any, x: Any = ..., indices: Any = ..., values: Any = ..., *, bias: float = ..., sparse_bias: float = ...) -> Any: ...
    def average(self) -> Any: ...
