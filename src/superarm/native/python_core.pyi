# Made by buildtools/stubs.py from python_core.pyx.
from typing import Any
from numpy.typing import NDArray
from superarm.native.core import Core
from superarm.native.rule import Rule
from superarm.native.scaling import Scaling

class PythonCore(Core):
    memory: dict[str, Any]
    error: Any
    def __init__(self, k: int, scaling: Scaling, rule: Rule, *, score: Any, learn: Any, memory: dict[str, Any]) -> None: ...
    def forget_error(self) -> Any: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, state: Any) -> None: ...
