# Made by buildtools/stubs.py from boltzmann.pyx.
from typing import Any
from superarm.native.rule import Rule

class BoltzmannRule(Rule):
    gamma: float
    alpha: float
    def __init__(self, k: Any, seed: Any, gamma: Any, alpha: Any) -> None: ...
