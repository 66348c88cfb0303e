# Made by buildtools/stubs.py from greedy.pyx.
from superarm.native.rule import Rule

class GreedyRule(Rule):
    ...
