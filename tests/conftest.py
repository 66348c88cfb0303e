from __future__ import annotations

import signal

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

    stream = open_data("digits", scale="unit")
    return stream.rows.dense, stream.y
