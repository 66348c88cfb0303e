"""superarm learns a classifier from yes/no answers about sets of labels.

>>> import superarm as sa
>>> learner = sa.SetLogit(n_labels=10, n_features=4, set_size=3, seed=0)
>>> decision = learner.decide([0.1, 0.0, 0.7, 0.2])
>>> learner.update(decision, hit=True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from superarm import checks, streams, theory
    from superarm.decision import Decision
    from superarm.learners import (
        EPABF,
        MCDBF,
        MCSLP,
        PA,
        SOBA,
        Banditron,
        Learner,
        Newtron,
        Perceptron,
        SetLogit,
        Softmax,
        load,
    )
    from superarm.learners.registry import make
    from superarm.simulation import Trace, simulate

__version__ = "0.1.0"

# Where each public name lives. Nothing is imported before it is used: Numba alone takes a second.
_HOMES = {
    "superarm.decision": ("Decision",),
    "superarm.learners": (
        "EPABF",
        "MCDBF",
        "MCSLP",
        "PA",
        "SOBA",
        "Banditron",
        "Learner",
        "Newtron",
        "Perceptron",
        "SetLogit",
        "Softmax",
        "load",
    ),
    "superarm.learners.registry": ("make",),
    "superarm.simulation": ("Trace", "simulate"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("checks", "errors", "streams", "theory")

__all__ = [
    "EPABF",
    "MCDBF",
    "MCSLP",
    "PA",
    "SOBA",
    "Banditron",
    "Decision",
    "Learner",
    "Newtron",
    "Perceptron",
    "SetLogit",
    "Softmax",
    "Trace",
    "checks",
    "load",
    "make",
    "simulate",
    "streams",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"superarm.{name}")
    else:
        raise AttributeError(f"module 'superarm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
