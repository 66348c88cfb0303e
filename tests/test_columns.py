"""Columns of somebody's table: what they hold, and which are no features."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from superarm.data.columns import cell, layout, look
from superarm.data.named import Names, spelt


def column(values: list[Any], name: str = "c") -> Any:
    columns, count = look([{name: value} for value in values])
    assert count == len(values)
    return columns[name]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", "-3e2", " 4 "], "numbers"),
        ([1, 2.5, np.int64(3), Decimal(4), timedelta(days=1)], "numbers"),
        (["1", "NA", "", "-", "?", "null", "NaN", "n/a", None, float("nan"), pd.NA], "numbers"),
        (["true", "False", "TRUE", "NA"], "true or false"),
        ([True, np.False_, None], "true or false"),
        (["2024-05-01", "2024-05-01T12:30", "-"], "dates"),
        ([date(2024, 5, 1), datetime(2024, 5, 1), np.datetime64("2024-05-01"), pd.NaT], "dates"),
        (["Rome", "Oslo", "NA"], "words"),
        (["1"] * 95 + ["many"] * 5, "numbers"),
        (["1"] * 80 + ["many"] * 20, "words"),
        (["2024-05-01", "3"], "words"),
        (["2024-13-41", "Rome"], "words"),
        (["1_000", "1,5", "inf"], "words"),
    ],
)
def test_what_a_column_holds(values: list[Any], kind: str) -> None:
    assert column(values).kind == kind


def test_gaps_and_words_are_counted() -> None:
    found = column(["1", "NA", "", None, "many", *["2"] * 45])
    assert found.in_words(50) == "numbers, 1 words, 3 gaps"
    assert column(["Rome", "NA", "", None]).in_words(4) == "words, 2 gaps"  # NA may be Namibia


@pytest.mark.parametrize(
    ("values", "name", "why"),
    [
        (range(30), "c", "counts the rows"),
        (map(str, range(1000, 1030)), "c", "counts the rows"),
        ([7.0] * 30, "c", "always 7"),
        (["Rome"] * 30, "c", "always Rome"),
        (["", None] * 15, "c", "empty"),
        ([[1, 2]] * 3, "c", "lists"),
        ([(i * 7) % 31 for i in range(30)], "customer_id", "an id"),
        ([(i * 7) % 31 for i in range(30)], "customerId", "an id"),
        ([f"u{(i * 7) % 31}" for i in range(30)], "user.id", "an id"),
        ([f"u{(i * 7) % 31}" for i in range(30)], "comment", "words, hardly any of them twice"),
        ([f"2024-05-{1 + i // 2:02}" for i in range(30)], "when", "time: it goes on with the rows"),
        # what may be a feature
        ([(i * 7) % 31 for i in range(30)], "age", ""),
        ([i % 7 for i in range(30)], "shop_id", ""),
        ([f"2024-05-{1 + i * 7 % 30:02}" for i in range(30)], "joined", ""),
        (["Rome", "Oslo"] * 15, "city", ""),
        (["Rome", None] * 30, "seen", ""),  # the gap says something
        (range(5), "few", ""),  # too few to tell
    ],
)
def test_what_is_no_feature(values: Any, name: str, why: str) -> None:
    given = list(values)
    assert column(given, name).why_not(len(given)) == why


def test_a_cell_is_read_as_its_column() -> None:
    assert [cell(v, "words") for v in ("7", 7, "", None, float("nan"), "NA")] == [
        "7",
        "7",
        None,
        None,
        None,
        "NA",
    ]
    assert [cell(v, "numbers") for v in ("7", 7, "NA", "many")] == [7.0, 7, None, "many"]
    assert [cell(v, "true or false") for v in ("true", False, "?")] == [True, False, None]
    assert cell("2024-05-01", "dates") == "2024-05-01"


def test_the_layout_has_room() -> None:
    rows = [{"age": i, "city": f"city {i % 300}"} for i in range(3000)]
    columns, _ = look(rows)
    names = layout({name: c.kind for name, c in columns.items()}, columns)
    assert names.numbers == ["age"]
    assert names.words == 1024  # twice as many as there are words, at least
    many = {f"n{i}": "numbers" for i in range(5000)}
    names = layout(many, {})
    assert names.places == 500
    assert len(names.numbers) == 400
    assert names.row(dict.fromkeys(many, 1.0), "this").shape == (1256,)


def test_numbers_may_be_spelt_where_they_are_known() -> None:
    names = Names()
    first = names.row({"age": 41, "vip": True, "city": "Rome"}, "this", grow=True)
    for row in (
        {"age": "41", "vip": "true", "city": "Rome"},
        {"age": " 41.0 ", "vip": "True", "city": "Rome"},
    ):
        assert names.row(row, "this").tobytes() == first.tobytes()
        assert names.rows(pd.DataFrame([row]), "this").tobytes() == first.tobytes()
    gap = names.row({"city": "Rome"}, "this")
    for text in ("NA", "", "-", "null", "?"):
        assert names.row({"age": text, "vip": text, "city": "Rome"}, "this").tobytes() == gap.tobytes()
    forty = names.row({"age": "forty", "city": "Rome"}, "this")  # a gap, and a word
    assert forty[: names.places].tolist() == gap[: names.places].tolist()
    assert forty.tobytes() != gap.tobytes()
    assert spelt("forty") == "forty"


def test_numbers_with_a_comma_are_words_and_told():
    some = column([f"{i % 3},5" for i in range(30)])
    assert some.why_not(30) == ""
    assert some.in_words(30) == "words, numbers with a comma? 3.5 is one, 3,5 a word"
    assert column([f"{i},5" for i in range(30)]).why_not(30) == "numbers with a comma: write 3.5, not 3,5"
