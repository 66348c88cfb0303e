# Made by buildtools/stubs.py from mcdbf.pyx.
from typing import Any
from superarm.native.core import LinearCore
from superarm.native.rule import Rule
from superarm.native.scaling import Scaling

class MCDBFCore(LinearCore):
    gamma: float
    estimate: str
    ordered: bool
    gate: bool
    learn_rho: bool
    margin: float
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, gamma: float, estimate: str, gate: bool, margin: float, rho: float, learn_rho: bool) -> None: ...
    def prepare(self, n: int, m: int) -> None: ...
    def prepare_given(self, n: int, m: int, gamma: float) -> Any: ...
