"""One way in for everybody: tables and columns, labels <-> numbers, rows of every kind."""
