# Made by buildtools/stubs.py from rule.pyx.
from superarm.native.stage import Stage

class Rule(Stage):
    k: int
    seed: int
    n_draw_state: int
    def __init__(self, k: int, seed: int) -> None: ...
    def prepare(self, n: int, m: int) -> None: ...
