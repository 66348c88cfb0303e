"""The table with its labels: each row as it was, with its result in columns beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from superarm.data.table_writer import table_writer

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling


# the columns that it adds to a table, beside label
EXPORT_COLUMNS = ("row", "belief", "clicks", "how", "by")
EXPORT_PREFIX = "superarm_"  # before such a name, where the table has a column of that name itself


def write_table(job: Labelling, output: Path) -> dict[str, str]:
    """Write the table with columns for its labels, and return their names; the table's own columns keep theirs."""
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
    with table_writer(output, list(rows[0])) as write_rows:
        write_rows(rows)
    return names
