"""One way in for everybody: from a table's cells to the numbers of a row.

tables.py       files and frames as rows with names
table_writer.py  rows with names out to a file
cells.py        one cell: a number, a date, a word, a text, a vector, or missing
column.py       what one column is, and its cells parsed
inference.py    which kind a column is, by its first cells, and whether it can be a feature;
                what else it may be (inference_messages.py)
columns.py      all columns of a table, kept with the model
encoding.py     rows with names as Row and Rows
rows.py         Row and Rows, checked once, as compiled code reads them
labels.py       labels as cells spell them, and their indices
"""
