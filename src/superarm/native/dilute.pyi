# Made by buildtools/stubs.py from dilute.pyx.
from typing import Any
from numpy.typing import NDArray
from superarm.native.rule import Rule

class DiluteRule(Rule):
    gamma: float
    a: float
    b: float
    def __init__(self, k: Any, seed: Any, gamma: Any) -> None: ...
    def prepare(self, n: int, m: int) -> None: ...
def log_set_table(n: int, m: int, gamma: float) -> NDArray[Any]: ...
