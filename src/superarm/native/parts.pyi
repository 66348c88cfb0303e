# Made by buildtools/stubs.py from parts.pyx.
from typing import Any
from superarm.native.stage import Stage

class Parts(Stage):
    k: int
    forget: float
    def __init__(self, k: int, forget: float = ...) -> None: ...
    @property
    def open(self) -> Any: ...
