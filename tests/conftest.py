from __future__ import annotations

import signal

import numpy as np
import pytest
from hypothesis import settings

# a busy machine is no defect: only a hang is too slow
settings.register_profile("superarm", deadline=None, max_examples=30)
settings.load_profile("superarm")
# A script's background job ignores Ctrl-C, and so would every process that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def digits():
    """scikit-learn's digits, rows of length 1."""
    from superarm.streams import open_data

    stream = open_data("digits")
    X = stream.rows.dense
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return X / norms.astype(np.float32)[:, None], stream.y
