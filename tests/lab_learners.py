"""Learners as users write them, some of them badly."""

from __future__ import annotations

import os
import signal
import time

import superarm as sa


class Fine(sa.Banditron):
    name = "fine"


class Slow(sa.Banditron):
    """About two seconds a run, whatever the machine; unless $LAB_HURRY is set."""

    name = "slow"

    def run(self, X, y, order=None, *, signed_sizes=None):
        if "LAB_HURRY" not in os.environ:
            time.sleep(0.01)
        return super().run(X, y, order, signed_sizes=signed_sizes)


class Breaks(sa.Banditron):
    """Raises with seed 1, half way."""

    name = "breaks"

    def run(self, X, y, order=None, *, signed_sizes=None):
        if self.seed == 1 and self.round > 100:
            raise RuntimeError("seed 1 breaks")
        return super().run(X, y, order, signed_sizes=signed_sizes)


class Dies(sa.Banditron):
    """Its process is gone with seed 1."""

    name = "dies"

    def run(self, X, y, order=None, *, signed_sizes=None):
        if self.seed == 1 and self.round > 100:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(X, y, order, signed_sizes=signed_sizes)
