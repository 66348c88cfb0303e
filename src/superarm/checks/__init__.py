"""check_learner: what every learner promises, tried on one: ours, or your own.

    from superarm.checks import check_learner

    check_learner(MyLearner, gamma=0.2)                            # a class and its parameters
    check_learner(lambda **common: MyLearner(rate=3, **common))    # or anything that makes one

The suite makes small learners (``n_labels``, ``n_features``, ``set_size``, ``seed``, sometimes
``labels``) and raises an AssertionError that names the promise that was broken. `CHECKS` has them
by name, for one test each:

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_learner(check):
        run_check(check, MyLearner, gamma=0.2)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from superarm.checks import answers, decisions, reproducible  # noqa: F401 (each adds its checks)
from superarm.checks.helpers import CHECKS, D, K, LearnerFactory
from superarm.errors import InvalidInput
from superarm.learners import Learner

__all__ = ["CHECKS", "check_learner", "run_check"]


def check_learner(learner: LearnerFactory, /, *, skip: Iterable[str] = (), **params: Any) -> None:
    """Run every check (but those in ``skip``) on ``learner(**params)``."""
    skipped = set(skip)
    for name in skipped - CHECKS.keys():
        raise InvalidInput(f"skip of check_learner must be names of checks, got {name!r}")
    for name in CHECKS:
        if name not in skipped:
            run_check(name, learner, **params)


def run_check(name: str, learner: LearnerFactory, /, **params: Any) -> None:
    """Run the check of this ``name`` in `CHECKS` on ``learner(**params)``."""
    if name not in CHECKS:
        raise InvalidInput.must("name", "run_check", "one of CHECKS", name, choices=CHECKS)

    def make(**common: Any) -> Learner:
        labels = {} if "labels" in common else {"n_labels": K}
        arguments = {"n_features": D, **labels, **params, **common}
        cls: Any = learner if isinstance(learner, type) else type(learner(**arguments))
        size = {} if cls.shows_one_label else {"set_size": 2}
        return learner(**size | arguments)

    try:
        CHECKS[name](make)
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{name}: the learner raised {type(error).__name__}: {error}") from error
