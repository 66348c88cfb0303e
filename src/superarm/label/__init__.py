"""Questions about rows until their labels are sure, with about one click a row. (docs/label.md)

What is labelled       rows_to_label.py, item_keys.py (which rows are the same), pictures.py
What answers say       answers.py (about one item), error_rates.py (how often people are wrong), names.py
                       → state.py (about all, with label_set.py, cross_fitted_model.py and model_trials.py)
What to ask next       error_estimator.py, error_curve.py (how many labels are wrong) → planner.py (which item, the end)
                       question.py (which labels it shows, who has it)
What people use        labelling.py `Labelling`, results.py what came out, notebook.py, app.py the page
What is kept           labelling_journal.py (settings and events, which state.py applies), erase.py
What goes out and in   table_export.py; of other tools: formats.py (their files), importing.py (which row it is about)
A labeller that knows the truth: simulated_labeller.py.
"""

from superarm.label.labelling import Labelling
from superarm.label.question import Question
from superarm.label.results import LabellingProgress

__all__ = ["Labelling", "LabellingProgress", "Question"]
