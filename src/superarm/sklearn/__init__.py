"""superarm in scikit-learn: a classifier that learns from yes/no answers about sets.

>>> from sklearn.datasets import load_digits
>>> from superarm.sklearn import SetFeedbackClassifier
>>> X, y = load_digits(return_X_y=True)
>>> model = SetFeedbackClassifier(set_size=3, random_state=0).fit(X, y)
>>> model.score(X, y) > 0.9
True
"""

from superarm._extras import require_extra

require_extra("sklearn")

from superarm.sklearn.classifier import SetFeedbackClassifier  # noqa: E402
from superarm.sklearn.pipeline import SetPipeline  # noqa: E402
from superarm.sklearn.scorer import SetScorer  # noqa: E402

__all__ = ["SetFeedbackClassifier", "SetPipeline", "SetScorer"]
