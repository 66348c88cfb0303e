# Made by buildtools/stubs.py from cover.pyx.
from typing import Any
from superarm.native.rule import Rule

class CoverRule(Rule):
    coverage: float
    eta: float
    uniform: float
    false_no: float
    false_yes: float
    level: float
    none: int
    full_information: bool
    short: bool
    def __init__(self, k: Any, seed: Any, coverage: Any, warm_up: Any, eta: Any, uniform: Any, false_no: Any, false_yes: Any) -> None: ...
    def has_room(self, level: float) -> Any: ...
    def threshold(self, level: float) -> Any: ...
    def edge(self, level: float) -> Any: ...
