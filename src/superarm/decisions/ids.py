"""The ids of decisions: those that callers give, and those that a service makes."""

from __future__ import annotations

import re

# ECMA's $ ends the text; Python's would also stand before a last newline
# . and .. would be gone from a path before it is sent
ID_PATTERN = r"^(?!\.{1,2}$)[A-Za-z0-9_.:\-]{1,128}$(?!\n)"
IS_ID = re.compile(ID_PATTERN).match
ID_DESCRIPTION = "1 to 128 letters, digits or any of _ . : - (and not . or ..)"
