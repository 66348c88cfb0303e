# Made by buildtools/stubs.py from linear.pyx.
from superarm.native.stage import Stage

class Weights(Stage):
    k: int
    d: int
    width: int
    stride: int
    def __init__(self, k: int, d: int, width: int, value: float = ...) -> None: ...
