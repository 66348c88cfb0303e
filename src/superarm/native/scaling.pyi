# Made by buildtools/stubs.py from scaling.pyx.
from typing import Any
from superarm.native.stage import Stage

class Scaling(Stage):
    d: int
    width: int
    def __init__(self, d: int, width: int) -> None: ...
    def scaled(self, x: Any = ..., indices: Any = ..., values: Any = ...) -> Any: ...
    def count(self, x: Any = ..., indices: Any = ..., values: Any = ...) -> Any: ...
class Unit(Scaling):
    bias: float
    def __init__(self, d: int, width: int, bias: float) -> None: ...
class Standard(Scaling):
    bias: float
    sparse_bias: float
    forget: float
    numbers: int
    def __init__(self, d: int, width: int, bias: float, sparse_bias: float, forget: float = ..., numbers: int = ...) -> None: ...
