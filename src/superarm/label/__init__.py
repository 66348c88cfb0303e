"""Questions about rows until their labels are sure, with less than a click a row. (docs/label.md)

rows.py what is labelled; belief.py what answers say; state.py answers -> labels and model; plan.py which row is
asked next, and when to stop; job.py `Labelling`, which people use; simulated.py a labeller that knows the truth.
"""

from superarm.label.job import Labelling, Progress, Question

__all__ = ["Labelling", "Progress", "Question"]
