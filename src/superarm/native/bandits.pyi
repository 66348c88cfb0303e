# Made by buildtools/stubs.py from bandits.pyx.
from typing import Any
from superarm.native.core import LinearCore
from superarm.native.rule import Rule
from superarm.native.scaling import Scaling

class BanditronCore(LinearCore):
    ...
class EPABFCore(LinearCore):
    C: float
    variant: int
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, C: float, variant: int) -> None: ...
def epabf_multipliers(losses: Any, at: int, a: float, high: float, delta: float) -> Any: ...
