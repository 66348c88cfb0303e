"""The table with its labels: each row as it was, with its result in columns beside it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from superarm._extras import require_extra
from superarm._files import write_atomically
from superarm.label.rows_to_label import EXPORT_COLUMNS, EXPORT_PREFIX

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")


def write_table(job: Labelling, output: Path) -> dict[str, str]:
    """Write the table with its labels, and return the names of their columns; those of the table keep theirs."""
    vectors = {"vectors"} & job.rows.read_options.keys()  # a file of their own: no column of the table
    table = [{name: row[name] for name in row if name not in vectors} for row in job.rows.cells]
    names = {}
    for name in ("label", *EXPORT_COLUMNS):
        names[name] = name
        while names[name] in table[0]:
            names[name] = EXPORT_PREFIX + names[name]
    rows = [
        table[result["row"]] | {names[name]: value for name, value in result.items()}
        for result in job.results()
    ]
    ending = output.suffix.lower()
    if ending == ".parquet":
        require_extra("logs")
        import polars

        write_atomically(output, polars.DataFrame(rows, infer_schema_length=None).write_parquet)
        return names
    text = io.StringIO()
    if ending == ".jsonl":
        text.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    else:
        delimiter = "\t" if ending == ".tsv" else ","
        writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_atomically(output, lambda file: file.write(text.getvalue().encode()))
    return names
