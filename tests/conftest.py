from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def digits():
    """scikit-learn's digits, rows of length 1."""
    from superarm.streams import open_data

    stream = open_data("digits", scale="unit")
    return stream.rows.values, stream.y
