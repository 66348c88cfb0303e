from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def digits():
    """scikit-learn's digits."""
    from superarm.streams import open_data

    stream = open_data("digits")
    return stream.rows.values, stream.y
