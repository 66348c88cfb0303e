"""Rules for choosing sets, one a file: with a learner, or on anybody's scores.

draws.py says what can be asked of each: how probable is a set, how probable a label's place in it.
"""

from superarm.explore.boltzmann import Boltzmann
from superarm.explore.cover import Cover, Coverage
from superarm.explore.dilute import Dilute
from superarm.explore.draws import Draw, FewSets, TiedSets
from superarm.explore.greedy import Greedy
from superarm.explore.plain import Choice, DrawContext, PlainRule
from superarm.explore.registry import draw_of, rule_from, rules
from superarm.explore.rule import Rule
from superarm.explore.runner_up import RunnerUp
from superarm.explore.uniform import Uniform

__all__ = [
    "Boltzmann",
    "Choice",
    "Cover",
    "Coverage",
    "Dilute",
    "Draw",
    "DrawContext",
    "FewSets",
    "Greedy",
    "PlainRule",
    "Rule",
    "RunnerUp",
    "TiedSets",
    "Uniform",
    "draw_of",
    "rule_from",
    "rules",
]
