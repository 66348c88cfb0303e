# Made by buildtools/stubs.py from second_order.pyx.
from superarm.native.core import LinearCore
from superarm.native.linear import Weights
from superarm.native.rule import Rule
from superarm.native.scaling import Scaling

class CoordinateCore(LinearCore):
    def __init__(self, k: int, scaling: Scaling, rule: Rule) -> None: ...
class SOBACore(CoordinateCore):
    def __init__(self, k: int, scaling: Scaling, rule: Rule) -> None: ...
class SOBADiagonalCore(SOBACore):
    A: Weights
    theta: Weights
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, a: float) -> None: ...
class SOBAFullCore(SOBACore):
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, a: float) -> None: ...
class NewtronCore(CoordinateCore):
    A: Weights
    b: Weights
    alpha: float
    beta: float
    D: float
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, alpha: float, beta: float, D: float) -> None: ...
