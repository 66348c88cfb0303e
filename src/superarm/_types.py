"""Types that all packages use."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Cell = Any  # of a user's table: a value of Python, NumPy, pandas, Polars or Arrow
Frame = Any  # a table of pandas, Polars or Arrow
JsonObject = dict[str, Any]  # values that JSON has, by name
