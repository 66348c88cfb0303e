"""Questions about rows until their labels are sure, with less than a click a row. (docs/label.md)

rows.py what is labelled; belief.py what answers say; state.py answers -> labels and model; plan.py which row is
asked next, and when to stop; question.py which labels it shows, and who has it; job.py `Labelling`, which people use;
results.py what came out; journal.py where it is kept; history.py what its events come to; formats.py and take_over.py
files of other tools; app.py the page; notebook.py the same in a notebook; simulated.py a labeller that knows the truth.
"""

from superarm.label.job import Labelling
from superarm.label.question import Question
from superarm.label.results import Progress

__all__ = ["Labelling", "Progress", "Question"]
