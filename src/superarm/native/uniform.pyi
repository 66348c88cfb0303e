# Made by buildtools/stubs.py from uniform.pyx.
from superarm.native.rule import Rule

class UniformRule(Rule):
    def prepare(self, n: int, m: int) -> None: ...
