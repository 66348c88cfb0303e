"""Threads: the calls of a learner take turns (compiled code works on its arrays without the GIL), as of a labelling."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class Locked(Protocol):
    """What has a lock that its own thread may take again."""

    @property
    def lock(self) -> AbstractContextManager[Any]: ...


Owner = TypeVar("Owner", bound=Locked)
Args = ParamSpec("Args")
Result = TypeVar("Result")
CallOfOwner = Callable[Concatenate[Owner, Args], Result]


def takes_turns(call: CallOfOwner[Owner, Args, Result]) -> CallOfOwner[Owner, Args, Result]:
    """Make a function of a learner or a labelling wait until no other thread works on it."""

    @wraps(call)
    def one_at_a_time(owner: Owner, /, *args: Args.args, **kwargs: Args.kwargs) -> Result:
        with owner.lock:
            return call(owner, *args, **kwargs)

    return one_at_a_time
