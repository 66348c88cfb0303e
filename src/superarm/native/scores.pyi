# Made by buildtools/stubs.py from scores.pyx.
from superarm.native.core import Core
from superarm.native.rule import Rule

class ScoresCore(Core):
    def __init__(self, k: int, rule: Rule) -> None: ...
