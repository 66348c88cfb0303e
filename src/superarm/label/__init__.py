"""Questions about rows until their labels are sure, with less than a click a row. (docs/label.md)

What is labelled       rows.py, pictures.py
What answers say       belief.py (of one item) → state.py (of all, with label_set.py and model.py)
What to ask next       wrong_labels.py (how many there are; calibration.py) → plan.py (which item, when to stop)
                       question.py (which labels it shows, who has it)
What people use        labelling.py `Labelling`, results.py and progress.py what came out, notebook.py, app.py the page
What is kept           journal.py, projector.py (what its events come to), erase.py
Other tools            formats.py (their files), importing.py (which row each answer is about)
A labeller that knows the truth: simulation.py. Names of labels, people and columns: names.py.
"""

from superarm.label.labelling import Labelling
from superarm.label.progress import Progress
from superarm.label.question import Question

__all__ = ["Labelling", "Progress", "Question"]
