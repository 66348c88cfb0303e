# Made by buildtools/stubs.py from linear.pyx.
from typing import Any
from superarm.native.stage import Stage

class Weights(Stage):
    k: int
    d: int
    width: int
    stride: int
    def __init__(self, k: int, d: int, width: int, value: float = ...) -> None: ...
    def score(self, x: Any = ..., indices: Any = ..., values: Any = ..., factor: Any = ..., bias: Any = ..., sparse_bias: Any = ...) -> Any: ...
    def add(self, labels: Any, c: Any, x: Any = ..., indices: Any = ..., values: Any = ..., factor: Any = ..., bias: Any = ..., sparse_bias: Any = ...) -> Any: ...
