"""Rows out to a file, and in again."""

from __future__ import annotations

from pathlib import Path

import pytest

from superarm.data.table_writer import check_table_path, table_writer
from superarm.data.tables import TABLES, open_table
from superarm.errors import InvalidInput

ROWS = [
    {"text": "Grüße, 1\n2", "yes": True, "list": [1.0, 2.5], "none": None},
    {"text": 'say "no"', "yes": False, "list": [0.0, 0.5], "none": None},
]


@pytest.mark.parametrize("ending", TABLES)
def test_what_is_written_in_batches_is_read_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    with table_writer(path, list(ROWS[0])) as write_rows:
        for row in ROWS:
            write_rows([row])
        assert not path.exists()
    expected = ROWS
    if ending in (".csv", ".tsv"):
        expected = [row | {"yes": str(row["yes"]).lower(), "list": str(row["list"])} for row in ROWS]
    assert list(open_table(path).rows()) == expected
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_half_a_character_does_not_stop_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    with table_writer(path, ["text"]) as write_rows:
        write_rows([{"text": "a \ud800 b"}])
    read = list(open_table(path).rows())
    assert read == [{"text": "a \ud800 b" if ending == ".jsonl" else "a \\ud800 b"}]


@pytest.mark.parametrize("ending", TABLES)
def test_a_failure_leaves_nothing(tmp_path: Path, ending: str) -> None:
    with pytest.raises(ZeroDivisionError), table_writer(tmp_path / f"t{ending}", ["text"]) as write_rows:
        write_rows([{"text": 1 / 0}])
    assert not list(tmp_path.iterdir())


def test_where_no_table_can_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"ending of .*t.xlsx must be one of .parquet, .csv"):
        check_table_path(tmp_path / "t.xlsx", "this")
    with pytest.raises(InvalidInput, match="path of this must be a file in an existing folder"):
        check_table_path(tmp_path / "no" / "t.csv", "this")
