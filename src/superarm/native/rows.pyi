# Made by buildtools/stubs.py from rows.pyx.
from typing import Any

class RowBlock:
    dense: Any
    indices: Any
    values: Any
    starts: Any
    n: int
    d: int
    width: int
    def __init__(self, dense: Any = ..., indices: Any = ..., values: Any = ..., starts: Any = ..., width: int = ...) -> None: ...
    def __len__(self) -> int: ...
