"""Columns of somebody's table: what they hold, and which are no features."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import superarm as sa
from superarm.cli.output import column_lines
from superarm.data.cells import json_row
from superarm.data.column import Column
from superarm.data.columns import Columns
from superarm.data.encoding import encode_row, max_text_width
from superarm.data.inference import LIKELY_ID, ColumnProfile, outcome_columns
from superarm.data.inference_messages import describe
from superarm.data.labels import parse_label
from superarm.data.tables import open_table
from superarm.errors import InvalidInput
from superarm.logs import Log, summarize


def column(values: list[Any], name: str = "c") -> Any:
    return ColumnProfile(name, values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", "-3e2", " 4 "], "numbers"),
        ([1, 2.5, np.int64(3), Decimal(4), timedelta(days=1)], "numbers"),
        ([np.timedelta64(36, "h"), np.timedelta64("NaT"), Decimal("NaN"), np.longdouble(1.5)], "numbers"),
        ([np.str_("1"), np.str_("2.5")], "numbers"),
        (["1", "NA", "", "-", "?", "null", "NaN", "n/a", None, float("nan"), pd.NA], "numbers"),
        (["true", "False", "TRUE", "NA"], "yes or no"),
        ([True, np.False_, None], "yes or no"),
        (["yes", "no", "NO", "true"], "yes or no"),
        (["12 %", "3.5%", "1,234", "2 000"], "numbers"),
        (["3,5", "1.234,5", "7"], "numbers"),
        (["12,50 €", "-1.300,00 €", "€ 7,10"], "numbers"),
        (["$12.50", "-$1,300", "£7", "CHF 12.50", "12 EUR"], "numbers"),
        (["01067", "80331", "NA", "10115"], "words"),  # postcodes
        (["01067", "8033", "10115"], "numbers"),
        (["00", "05", "23"], "numbers"),
        ([[1.0, 2.0], (3, 4), np.zeros(2)], "vector"),
        (["card not working", "where is my card", "late again today"], "text"),
        (["very good", "not good"] * 30, "words"),  # two words, few different cells
        (["我的银行卡不能用", "卡在哪里啊请问", "今天又迟到了吗"], "text"),
        (["1.5.2024", "2024/05/02", "13.12.2023 10:00"], "dates"),
        (["2024-05-01", "2024-05-01T12:30", "-"], "dates"),
        (["1.5.24", "31.12.23", "1.5.24 10:00"], "dates"),
        (["31/12/2024", "1/2/2024 10:00", "12/31/2024 3:05 PM"], "dates"),
        (["32/12/2024", "31/13/2024", "1/2/24"], "words"),
        ([date(2024, 5, 1), datetime(2024, 5, 1), np.datetime64("2024-05-01"), pd.NaT], "dates"),
        (["Rome", "Oslo", "NA"], "words"),
        (["1"] * 95 + ["many"] * 5, "numbers"),
        (["1"] * 80 + ["many"] * 20, "words"),
        (["2024-05-01", "3"], "words"),
        (["2024-13-41", "Rome"], "words"),
        (["1_000", "1,x", "inf"], "words"),
    ],
)
def test_what_a_column_holds(values: list[Any], kind: str) -> None:
    assert column(values).kind == kind


class Colour(str, Enum):  # noqa: UP042 (its str() is no "red")
    RED = "red"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.timedelta64(36, "h"), 1.5),
        (pd.Timedelta("12h"), 0.5),
        (np.timedelta64("NaT"), None),
        (np.datetime64("NaT"), None),
        (Decimal("NaN"), None),
        (Decimal("1.5"), 1.5),
        (np.longdouble(1.5), 1.5),
        (pd.Timestamp("2024-05-01 12:30:00.123456789"), "2024-05-01T12:30:00.123456"),
        (np.datetime64("2024-05-01"), "2024-05-01T00:00:00"),
        (Colour.RED, "red"),
        (pd.Series([1, 2]), [1, 2]),
    ],
)
def test_a_value_of_any_library_is_the_same_by_itself_and_as_json(value: Any, plain: Any) -> None:
    """What a Decision keeps, and the client sends, makes the row that the value itself makes."""
    kept = json_row({"a": value})["a"]
    assert kept == plain
    assert type(kept) is type(plain)
    columns = Columns.open_for([{"a": value}], None, "this")
    again = Columns.open_for([{"a": kept}], None, "this")
    rows = [encode_row(c, {"a": v}, "this", {}, grow_for=2)[0] for c, v in ((columns, value), (again, kept))]
    np.testing.assert_array_equal(*rows)


def test_true_of_numpy_counts_for_the_mean() -> None:
    assert column([np.True_, np.False_, np.True_, np.True_]).mean == 0.75


def test_gaps_and_words_are_counted() -> None:
    found = column(["1", "NA", "", None, "many", *["2"] * 45])
    assert describe(found) == "numbers, 1 words, 3 missing"
    words = column(["Rome", "NA", "", None])
    assert describe(words) == "words, 2 missing"  # NA may be Namibia


@pytest.mark.parametrize(
    ("values", "name", "why"),
    [
        (range(30), "c", "counts the rows"),
        (map(str, range(1000, 1030)), "c", "counts the rows"),
        ([7.0] * 30, "c", "always 7"),
        (["Rome"] * 30, "c", "always Rome"),
        (["", None] * 15, "c", "empty"),
        ([["a", "b"]] * 3, "c", "lists"),
        ([[1, 2], [1]], "c", "lists"),
        ([time(12), time(13)], "c", "of type time"),
        ([{"a": 1}, None], "c", "of type dict"),
        ([(i * 7) % 31 for i in range(30)], "customer_id", "an id"),
        ([(i * 7) % 31 for i in range(30)], "customerId", "an id"),
        ([f"u{(i * 7) % 31}" for i in range(30)], "user.id", "an id"),
        ([f"u{(i * 7) % 31}" for i in range(30)], "comment", "an id: hardly any word twice"),
        ([f"2024-05-{1 + i // 2:02}" for i in range(30)], "when", "time: it goes on with the rows"),
        # what may be a feature
        ([(i * 7) % 31 for i in range(30)], "age", ""),
        ([i % 7 for i in range(30)], "shop_id", ""),
        ([f"2024-05-{1 + i * 7 % 30:02}" for i in range(30)], "joined", ""),
        (["Rome", "Oslo"] * 15, "city", ""),
        ([[1.0, i] for i in range(30)], "embedding_id", ""),
        (["Rome", None] * 30, "seen", ""),  # the gap says something
        (range(5), "few", ""),  # too few to tell
    ],
)
def test_what_is_no_feature(values: Any, name: str, why: str) -> None:
    given = list(values)
    assert column(given, name).exclusion_reason() == why


def test_ids_and_constants_are_taken_where_there_is_nothing_else() -> None:
    rows = [{"ticket": f"T{i}", "shop": 7, "solved": i % 2} for i in range(30)]
    reserved = outcome_columns(rows[0])
    assert reserved == {"solved": "only known afterwards"}
    assert Columns.infer(rows, reserved=reserved).kinds == {"ticket": "words", "shop": "numbers"}
    more = [row | {"age": i % 9} for i, row in enumerate(rows)]
    columns = Columns.infer(more, reserved=reserved)
    assert (columns.names, columns.left_out["ticket"]) == (["age"], LIKELY_ID)
    assert columns.warnings == ["taken for ids: ticket (declared as text or words, they are features)"]


def read(kind: str, *values: Any, **more: Any) -> list[Any]:
    return [Column("c", kind, **more).parse(value, "this") for value in values]


def test_a_cell_is_read_as_its_column() -> None:
    assert read("words", "7", 7, 7.0, "", None, float("nan"), "NA", True) == [
        *("7", "7", "7", None, None, None, "NA", "true")
    ]
    assert read("numbers", "7", 7, "NA", "many", "12 %", "1,234.5", "3,5") == [
        *(7.0, 7.0, None, "many", 12.0, 1234.5, 3.5)
    ]
    assert read("numbers", "3,5", "1.234,5", "12", decimal=",") == [3.5, 1234.5, 12.0]
    assert read("yes or no", "yes", False, "?", "1") == [1.0, 0.0, None, 1.0]
    same = [date(2024, 5, 1)] * 3
    assert read("dates", "2024-05-01", "1.5.2024", "2024/5/1") == same
    assert read("vector", "[1, 2]", [1, 2], np.ones(2), None, length=2)[3] is None
    with pytest.raises(InvalidInput, match=r"x\['c'\] of this must be a list of 2 numbers, got 3 numbers"):
        read("vector", [1, 2, 3], length=2)


@pytest.mark.parametrize(
    ("values", "day_first", "words", "of_the_first"),
    [
        (["1/2/2024", "31/12/2024"], True, "dates, day first", date(2024, 2, 1)),
        (["1/2/2024", "12/31/2024"], False, "dates, month first", date(2024, 1, 2)),
        (["1/2/2024", "3/4/2024"], True, "dates, day first, which no cell tells", date(2024, 2, 1)),
        (["1/2/2024", *["12/31/2024"] * 2, "31/12/2024"], False, "dates, month first, but for 3", date(2024, 1, 2)),
        (["1.2.2024", "2024/12/31"], True, "dates", date(2024, 2, 1)),
    ],
)  # fmt: skip
def test_dates_with_slashes(values: list[str], day_first: bool, words: str, of_the_first: date) -> None:
    columns = Columns.infer([{"due": value, "n": i} for i, value in enumerate(values * 3)])
    due = columns.columns["due"]
    assert (due.kind, due.day_first, columns.descriptions["due"]) == ("dates", day_first, words)
    assert due.parse(values[0], "this") == of_the_first
    assert due.parse("31/12/2024", "this") == due.parse("12/31/2024", "this") == date(2024, 12, 31)
    assert Columns.from_dict(columns.to_dict()).columns["due"].day_first == day_first
    declared = Column("due", "dates", day_first=False)
    assert declared.parse("05/01/2024", "this") == date(2024, 5, 1)
    assert declared.parse("5/1/2024 12:05 am", "this") == datetime(2024, 5, 1, 0, 5)
    assert declared.parse("5/1/2024 3:05:30 PM", "this") == datetime(2024, 5, 1, 15, 5, 30)
    with pytest.raises(InvalidInput, match="day_first of 'due' of columns must be true or false"):
        Column("due", "dates", day_first="year")


def test_the_layout_of_a_table() -> None:
    rows = [
        {"age": i % 90, "city": f"city{i % 300}", "note": f"n{i} is late" * (i % 9 > 0)} for i in range(3000)
    ]
    columns = Columns.infer(rows).for_labels(12)
    assert columns.kinds == {"age": "numbers", "city": "words", "note": "text"}
    assert columns.dense_part.n_word_features == 1024  # twice as many as there are words, at least
    assert columns.layout == (2 * 1 + 1024, 65_536, 1)
    plain = Columns.infer([{"b": 2.0, "a": i % 7} for i in range(10)])
    assert plain.is_numeric_only
    assert plain.encode_row({"a": "5", "b": 1}, "this").tolist() == [1.0, 5.0]
    assert plain.encode_row({"b": 1}, "this").tolist() == [
        1.0,
        np.float32(2.4),
    ]  # a gap is the mean of the look
    many = Columns.infer([{"sku": f"s{i % 2000}", "n": i % 5} for i in range(6000)])
    assert many.columns["sku"].high_cardinality  # into the sparse part, each word whole
    assert len(many.for_labels(3).encode_row({"sku": "s7"}, "this").indices) == 1


def test_the_width_of_text_follows_from_labels_and_memory() -> None:
    assert [max_text_width(k) for k in (2, 512, 1000, 10_000, 10**6)] == [65_536, 65_536, 32_768, 2048, 1024]


def test_what_was_asked_for() -> None:
    rows = [{"code": f"{i % 4}", "id": f"u{i}", "n": i % 3, "when": "2024-05-01"} for i in range(40)]
    found = Columns.infer(rows, kinds={"code": "words", "id": "text", "n": "left out"})
    assert found.kinds == {"code": "words", "id": "text"}
    assert found.left_out == {"n": "as asked for", "when": "always 2024-05-01"}
    assert found.descriptions["code"] == "words, as asked for"
    with pytest.raises(InvalidInput, match="columns of a table must be among its columns code, id, n, when"):
        Columns.infer(rows, kinds={"cod": "text"})
    with pytest.raises(InvalidInput, match="kind of 'a' of columns must be one of numbers, yes or no"):
        Column("a", "number")
    with pytest.raises(InvalidInput, match=r"kind of 'n' of columns must be one of .*left out, got 'texts'"):
        Columns.infer(rows, kinds={"n": "texts"})


def test_columns_in_a_file(tmp_path: Any) -> None:
    columns = Columns.infer([{"age": i % 9, "note": f"a note {i}"} for i in range(30)])
    columns.write(tmp_path / "c.json")
    assert Columns.read(tmp_path / "c.json") == columns
    (tmp_path / "own.json").write_text('{"columns": [{"name": "age", "kind": "numbers"}]}')
    assert Columns.read(tmp_path / "own.json").kinds == {"age": "numbers"}
    learner = sa.SetLogit(n_labels=3)
    learner.use_columns(tmp_path / "c.json")
    learner.save(tmp_path / "m.npz")
    assert Columns.read(tmp_path / "m.npz") == learner.columns == sa.load(tmp_path / "m.npz").columns
    for wrong, message in (
        ("[]", "must be an object with a list columns"),
        ('{"t": "words"}', r"where a table tells the others, Columns\.infer\(table, kinds=…\)"),
        ("{", "must be a JSON file such as"),
    ):
        (tmp_path / "bad.json").write_text(wrong)
        with pytest.raises(InvalidInput, match=message):
            Columns.read(tmp_path / "bad.json")


def test_numbers_may_be_spelt_where_they_are_known() -> None:
    names = Columns(n_word_features=256, n_open_numbers=40)
    row = {"age": 41, "vip": True, "city": "Rome"}
    first, names = encode_row(names, row, "this", {}, grow_for=2)
    for row in (
        {"age": "41", "vip": "true", "city": "Rome"},
        {"age": " 41.0 ", "vip": "True", "city": "Rome"},
    ):
        assert names.encode_row(row, "this").tobytes() == first.tobytes()
        assert names.encode_table(pd.DataFrame([row]), "this").dense.tobytes() == first.tobytes()
    gap = names.encode_row({"city": "Rome"}, "this")
    for text in ("NA", "", "-", "null", "?"):
        assert names.encode_row({"age": text, "vip": text, "city": "Rome"}, "this").tobytes() == gap.tobytes()
    forty = names.encode_row({"age": "forty", "city": "Rome"}, "this")  # a gap, and a word
    assert forty[: names.dense_part.n_numbers].tolist() == gap[: names.dense_part.n_numbers].tolist()
    assert forty.tobytes() != gap.tobytes()


THOUSANDS = ["303", "3.532", "12.000"]


@pytest.mark.parametrize(
    ("cells", "others", "read", "warned"),
    [
        (THOUSANDS, ["1,5", "2", "0,16"], 3532.0, ""),
        (THOUSANDS, ["1.5", "2", "0.16"], 3.532, ""),
        (THOUSANDS, ["1", "2", "3"], 3.532, "3.532 in a is read as 3.532, since no cell and no other column"),
        (["303", "3,532"], ["1", "2", "3"], 3532.0, 'for 3.532 set "decimal": "," for a in a columns file'),
        (["303", "3,532"], ["1,5", "2", "0,16"], 3.532, ""),
        (["303", "3,532"], ["$1.50", "2", "0.16"], 3532.0, ""),
        (["1.234.567", "3.532"], ["1", "2", "3"], 3532.0, ""),  # its own cells tell
        (["0.532", "3.532"], ["1,5", "2", "0,16"], 3.532, ""),
        (["0,532", "3,532"], ["1", "2", "3"], 3.532, ""),
    ],
)
def test_whether_a_point_means_thousands(
    cells: list[str], others: list[str], read: float, warned: str
) -> None:
    table = {"a": cells * (60 // len(cells)), "b": others * 20}
    columns = Columns.infer(table)
    assert columns.columns["a"].parse(cells[1], "this") == read
    assert [warned in one for one in columns.warnings] == [True] * bool(warned)


@pytest.mark.parametrize("n_commas", [12, 30, 48])
def test_both_decimal_marks_in_one_column_are_read(n_commas: int) -> None:
    cells = [f"{i * 7 % 60},50 €" if i < n_commas else f"{i * 7 % 60}.50" for i in range(60)]
    columns = Columns.infer({"price": cells, "kind": ["a", "b"] * 30})
    assert columns.descriptions["price"] == "numbers, with decimal commas and points"
    assert not columns.warnings
    warnings: dict[str, str] = {}
    rows = columns.encode_table({"price": cells, "kind": ["a"] * 60}, "this", warnings=warnings)
    assert rows.dense[:, 0].tolist() == [i * 7 % 60 + 0.5 for i in range(60)]
    assert not warnings


@pytest.mark.parametrize(("n_commas", "read", "other"), [(20, "1.234", "1234"), (38, "1234", "1.234")])
def test_both_decimal_marks_leave_thousands_open(n_commas: int, read: str, other: str) -> None:
    cells = ["12,50" if i < n_commas else "1.234" if i >= 58 else "12.50" for i in range(60)]
    (warning,) = Columns.infer({"price": cells}).warnings
    assert warning.startswith(f"2 numbers such as 1.234 in price are read as {read}, since ")
    assert f'for {other} set "decimal": ' in warning


def test_a_unit_that_all_numbers_of_a_column_have_is_taken_off() -> None:
    numbers = [36.0 + i / 10 for i in range(60)]
    cells = [f"{number:.1f} °C" for number in numbers]
    cells[3], cells[5] = "36,3 °C", "high"
    table = {"temp": [*cells, "-", ""], "kind": ["a", "b"] * 31}
    for kinds in (None, {"temp": "numbers"}):
        columns = Columns.infer(table, kinds=kinds)
        asked = "" if kinds is None else ", as asked for"
        assert columns.descriptions["temp"] == (
            f"numbers{asked}, in °C, with decimal commas and points, 1 words, 2 missing"
        )
        assert Columns.from_dict(columns.to_dict()) == columns
        parsed = [columns.columns["temp"].parse(cell, "this") for cell in ("36.5 °C", "36,5°C", "36.5", 36.5)]
        assert parsed == [36.5] * 4
        rows = columns.encode_table(table, "this").dense
        np.testing.assert_array_equal(np.delete(rows[:60, 0], 5), np.delete(np.float32(numbers), 5))
    assert columns.columns["temp"].parse("97.7 °F", "this") == "97.7 °F"  # another unit is no such number
    assert Column("a", "numbers").to_dict() == {"name": "a", "kind": "numbers"}


def test_different_units_are_told_and_named_where_numbers_are_asked_for() -> None:
    cells = [f"{i} min" if i % 3 else f"{i / 60:.2f} h" for i in range(60)]
    remedy = "time holds numbers with different units (min: 40, h: 20): written in one unit, they are read as numbers"
    assert remedy in Columns.infer({"time": cells, "kind": ["a", "b"] * 30}).warnings
    with pytest.raises(
        InvalidInput, match=r"60 filled cells hold words: numbers .* units \(min: 40, h: 20\)"
    ):
        Columns.infer({"time": cells}, kinds={"time": "numbers"})
    some = [f"{i} min" if i % 3 else str(i) for i in range(60)]
    (warning,) = Columns.infer({"time": some}).warnings
    assert (
        "(min: 40, none: 20): written in one unit, or asked for as numbers, they are read as num" in warning
    )
    assert not Columns.infer({"time": some}, kinds={"time": "words"}).warnings
    assert Columns.infer({"time": some}, kinds={"time": "numbers"}).columns["time"].unit == "min"


@pytest.mark.parametrize(
    "cells",
    [
        ["01067 DE", "80331 DE", "10115 DE"] * 20,  # postcodes
        [f"{i} {street}" for i, street in enumerate(["Main Street", "Oak Ave", "Elm Rd"] * 20)],
        [f"{i} cards of mine are not working" for i in range(60)],
        [f"2024-Q{i % 4 + 1}" for i in range(60)],
    ],
)
def test_words_behind_a_number_are_not_always_a_unit(cells: list[str]) -> None:
    (column,) = Columns.infer({"a": cells}).columns.values()
    assert (column.kind in ("words", "text"), column.unit) == (True, "")


def test_a_number_among_dates_is_told() -> None:
    columns = Columns([Column("due", "dates")])
    for X in ({"due": "7072024"}, {"due": 45480}):
        learner = sa.SetLogit(n_labels=3)
        learner.use_columns(columns)
        with pytest.warns(sa.ColumnWarning, match="'due' holds dates, got the number .*: it counts as days"):
            learner.decide(X)
    for table in (pd.DataFrame({"due": [45480]}), pd.DataFrame({"due": ["45480"]})):
        learner = sa.SetLogit(n_labels=3)
        learner.use_columns(columns)
        with pytest.warns(sa.ColumnWarning, match="got the number 45480"):
            learner.predict(table)


def test_what_is_not_as_declared_is_told_once() -> None:
    learner = sa.SetLogit(n_labels=3)
    learner.use_columns({"columns": [{"name": "age", "kind": "numbers"}, {"name": "city", "kind": "words"}]})
    with pytest.warns(sa.ColumnWarning) as told:
        learner.decide({"age": "forty", "colour": "red"})
    assert [str(one.message) for one in told] == [
        "SetLogit: column 'age' holds numbers, got 'forty': the number counts as missing, and this as a word",
        "SetLogit: column 'colour' is new: it is left out",
        "SetLogit: column 'city' is missing",
    ]
    learner.decide({"age": "fifty", "colour": "blue"})  # once: a second warning would fail the test
    other = sa.SetLogit(n_labels=3)
    other.use_columns(learner.columns)
    with pytest.warns(sa.ColumnWarning, match="holds words, got a text: 'the old town of Rome'"):
        other.predict([{"age": 3, "city": "the old town of Rome"}])


def test_numbers_asked_for_where_words_stand_are_refused_or_told() -> None:
    rows = [{"size": word, "price": "9" if i < 2 else word} for i, word in enumerate(["big", "small"] * 3)]
    with pytest.raises(InvalidInput, match="column 'size' was declared as numbers, but its"):
        Columns.infer(rows, kinds={"size": "numbers"})
    columns = Columns.infer(rows, kinds={"price": "numbers"})
    assert columns.descriptions["price"] == "numbers, as asked for, 4 words in most cells"
    assert [line for line in column_lines(columns, 2) if line.startswith("WARNING")] == [
        "WARNING: asked for as numbers or dates, but most cells hold words: price"
    ]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"columns of the table must be of one length, got {'a': 3, 'b': 2}"
    ):
        Columns.infer({"a": [1, 2, 3], "b": [1, 2]})
    with pytest.raises(InvalidInput, match="of one length"):
        Columns([Column("a", "numbers")]).encode_table({"a": [1, 2, 3], "b": [1, 2]}, "this")


def test_vectors_as_json_in_a_csv_are_vectors(tmp_path: Path) -> None:
    lines = [
        "v,note,label",
        *(f'"[{i}, 0.5, {-i}]","[{i}] see below",{"ab"[i % 2]}' for i in range(40)),
        '"",,a',
    ]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    columns = sa.streams.open_data(tmp_path / "v.csv", label="label").columns
    assert columns.kinds["v"] == "vector"
    assert columns.kinds["note"] == "text"


def test_many_columns_are_not_all_listed() -> None:
    columns = Columns.infer([{f"c{i}": float(i * j) for i in range(300)} for j in range(30)])
    [features, *_] = column_lines(columns, 3)
    assert len(features) < 300
    assert "and 280 more" in features


def test_a_column_of_names_of_labels_is_told() -> None:
    teams = ["ads", "billing", "login"]
    rows = [
        {"n": i % 7, "city": ["Rome", "ads"][i % 2], "solver": teams[i % 3], "team": teams[i % 3]}
        for i in range(60)
    ]
    told = "column solver holds names of labels: does it say the answer? --leave-out solver"
    assert sa.streams.from_frame(pd.DataFrame(rows), label="team").columns.warnings == [told]
    left_out = sa.streams.from_frame(pd.DataFrame(rows), label="team", kinds={"solver": "left out"})
    assert left_out.columns.warnings == []
    features = [{name: row[name] for name in ("n", "city", "solver")} for row in rows]
    answers = [{"labels": teams[:2] if i % 2 else teams[1:], "hit": i % 3 == 0} for i in range(60)]
    for log in (
        [row | answer for row, answer in zip(features, answers, strict=True)],
        [{"x": row, **answer} for row, answer in zip(features, answers, strict=True)],
    ):
        assert summarize(Log(log)).feature_columns.warnings == [told]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_word_features": 1}, "n_word_features of Columns must be 0 or at least 2"),
        ({"n_word_features": -3}, "n_word_features of Columns must be a whole number of at least 0"),
        ({"text_width": 1000}, "text_width of Columns must be a power of two, got 1000"),
        ({"text_width": "wide"}, "text_width of Columns must be a whole number of at least 1"),
        ({"n_open_numbers": -1}, "n_open_numbers of Columns must be a whole number of at least 0"),
    ],
)
def test_sizes_that_no_row_could_have_are_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Columns([Column("note", "text")], **sizes)


def test_a_mark_within_quotes_divides_no_header(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text('"price, net";"qty, gross"\n1;2\n', encoding="utf-8")
    assert [dict(row) for row in open_table(file).rows()] == [{"price, net": "1", "qty, gross": "2"}]


def test_digits_without_end_are_a_name() -> None:
    assert parse_label("9" * 5000) == "9" * 5000
