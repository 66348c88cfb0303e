"""Rules for choosing sets, one a file: with a learner, or on the scores of any model.

distributions.py: how probable is a set under a rule, and how probable a label in it.
"""

from superarm.explore.boltzmann import Boltzmann
from superarm.explore.cover import Cover
from superarm.explore.coverage import Coverage
from superarm.explore.dilute import Dilute
from superarm.explore.distributions import Mixture, SetDistribution
from superarm.explore.greedy import Greedy
from superarm.explore.plain import Choice, DrawContext, PlainRule
from superarm.explore.registry import distribution_of, rule_from, rules
from superarm.explore.rule import Rule
from superarm.explore.runner_up import RunnerUp
from superarm.explore.uniform import Uniform

__all__ = [
    "Boltzmann",
    "Choice",
    "Cover",
    "Coverage",
    "Dilute",
    "DrawContext",
    "Greedy",
    "Mixture",
    "PlainRule",
    "Rule",
    "RunnerUp",
    "SetDistribution",
    "Uniform",
    "distribution_of",
    "rule_from",
    "rules",
]
