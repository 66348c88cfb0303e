"""The learners, one file per algorithm: a new one is its file, its line here, and its name in superarm/__init__.py."""

from superarm.learners.averaged_softmax import AveragedSoftmax as AveragedSoftmax
from superarm.learners.banditron import Banditron as Banditron
from superarm.learners.epabf import EPABF as EPABF
from superarm.learners.learner import Learner as Learner
from superarm.learners.mcdbf import MCDBF as MCDBF
from superarm.learners.mcslp import MCSLP as MCSLP
from superarm.learners.model_files import load as load
from superarm.learners.newtron import Newtron as Newtron
from superarm.learners.pa import PA as PA
from superarm.learners.perceptron import Perceptron as Perceptron
from superarm.learners.plain import PlainLearner as PlainLearner
from superarm.learners.scores import Scores as Scores
from superarm.learners.setlogit import SetLogit as SetLogit
from superarm.learners.soba import SOBA as SOBA
from superarm.learners.softmax import Softmax as Softmax
