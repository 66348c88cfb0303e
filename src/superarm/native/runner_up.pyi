# Made by buildtools/stubs.py from runner_up.pyx.
from typing import Any
from superarm.native.rule import Rule

class RunnerUpRule(Rule):
    explore: float
    uniform: float
    forget: float
    def __init__(self, k: Any, seed: Any, explore: Any, uniform: Any, forget: Any) -> None: ...
    def prepare(self, n: int, m: int) -> None: ...
