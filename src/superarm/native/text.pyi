# Made by buildtools/stubs.py from text.pyx.
from typing import Any

def hash_texts(columns: Any, n: int, width: int) -> Any: ...
