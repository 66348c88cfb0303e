"""A world of people, with names for their columns: age, income, city and vip decide the label."""

from __future__ import annotations

from typing import Any

import numpy as np

CITIES = ["Rome", "Oslo", "Lima", "Cairo", "Delhi", "Paris", "Quito", "Bonn"]


def people(n: int, seed: int = 0) -> tuple[list[dict[str, Any]], np.ndarray[Any, Any]]:
    """The world of the issue: age, income, city and vip, and a label that all of them decide."""
    random, world = np.random.default_rng(seed), np.random.default_rng(5)
    age, city, vip = random.integers(18, 80, n), random.integers(0, 8, n), random.random(n) < 0.3
    income = np.round(np.exp(random.normal(10.5, 0.5, n)))
    numbers = np.stack([(age - 49) / 18, (np.log(income) - 10.5) / 0.5], axis=1)
    s = numbers @ (2.0 * world.normal(size=(2, 6))) + world.normal(size=(8, 6))[city]
    y = (s + vip[:, None] * world.normal(size=6)).argmax(axis=1)
    named = [
        {"age": int(a), "income": float(i), "city": CITIES[c], "vip": bool(v)}
        for a, i, c, v in zip(age, income, city, vip, strict=True)
    ]
    return named, y
