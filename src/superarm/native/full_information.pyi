# Made by buildtools/stubs.py from full_information.pyx.
from typing import Any
from superarm.native.core import LinearCore
from superarm.native.rule import Rule
from superarm.native.scaling import Scaling

class PerceptronCore(LinearCore):
    def __init__(self, k: int, scaling: Scaling, rule: Rule) -> None: ...
class SoftmaxCore(LinearCore):
    step: float
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, step: float) -> None: ...
class MCSLPCore(LinearCore):
    gate: bool
    margin: float
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, gate: bool, margin: float) -> None: ...
class PACore(LinearCore):
    C: float
    variant: int
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, C: float, variant: int) -> None: ...
def pa_threshold(losses: Any, X: float, C: float, variant: int) -> Any: ...
