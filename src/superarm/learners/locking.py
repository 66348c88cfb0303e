"""Threads: the calls of a learner take turns, as compiled code works on the learner's own arrays without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from superarm.learners.learner import Learner

SomeLearner = TypeVar("SomeLearner", bound="Learner")
Args = ParamSpec("Args")
Result = TypeVar("Result")
CallOfLearner = Callable[Concatenate[SomeLearner, Args], Result]


def takes_turns(call: CallOfLearner[SomeLearner, Args, Result]) -> CallOfLearner[SomeLearner, Args, Result]:
    """Make a function of a learner wait until no other thread works on the learner."""

    @wraps(call)
    def one_at_a_time(learner: SomeLearner, /, *args: Args.args, **kwargs: Args.kwargs) -> Result:
        with learner.lock:
            return call(learner, *args, **kwargs)

    return one_at_a_time
