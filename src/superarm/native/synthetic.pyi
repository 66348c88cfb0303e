# Made by buildtools/stubs.py from synthetic.pyx.
from typing import Any

def fill(seed: int, first: int, owned: Any, sizes: Any, noise: float, X: Any, y: Any) -> Any: ...
