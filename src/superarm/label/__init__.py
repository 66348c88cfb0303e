"""Questions about rows until their labels are sure, with less than a click a row. (docs/label.md)

What is labelled       rows.py, pictures.py, settings.py
What answers say       answers.py, belief.py (about one item) → state.py (about all, with label_set.py and model.py)
What to ask next       error_estimator.py, calibration.py (how many labels are wrong) → planner.py (which item, the end)
                       question.py (which labels it shows, who has it)
What people use        labelling.py `Labelling`, results.py what came out, notebook.py, app.py the page
What is kept           journal.py, projector.py (what its events come to), erase.py
Other tools            formats.py (their files), importing.py (which row each answer is about)
A labeller that knows the truth: simulation.py.
"""

from superarm.label.labelling import Labelling
from superarm.label.question import Question
from superarm.label.results import LabellingProgress

__all__ = ["Labelling", "LabellingProgress", "Question"]
