# Made by buildtools/stubs.py from cpu.pyx.

LEVELS: tuple[str, ...]
LEVEL: str
def levels() -> tuple[str, ...]: ...
