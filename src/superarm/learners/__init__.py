"""The learners, one file per algorithm, and their names on the command line."""

from superarm.learners.banditron import Banditron
from superarm.learners.base import Learner, load
from superarm.learners.epabf import EPABF
from superarm.learners.mcdbf import MCDBF
from superarm.learners.mcslp import MCSLP
from superarm.learners.newtron import Newtron
from superarm.learners.pa import PA
from superarm.learners.perceptron import Perceptron
from superarm.learners.setlogit import AveragedSoftmax, SetLogit
from superarm.learners.soba import SOBA
from superarm.learners.softmax import Softmax

__all__ = [
    "EPABF",
    "MCDBF",
    "MCSLP",
    "PA",
    "SOBA",
    "AveragedSoftmax",
    "Banditron",
    "Learner",
    "Newtron",
    "Perceptron",
    "SetLogit",
    "Softmax",
    "load",
]
