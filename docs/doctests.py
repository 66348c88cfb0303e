"""For the site: examples in docstrings become a section of their own, as mkdocstrings wants them.

Our docstrings end in lines with ``>>>``; to Markdown these would be quotations.
"""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """``>>>`` paragraphs under the heading "Examples:"."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = sectioned(obj.docstring.value)


def sectioned(text: str) -> str:
    """A docstring with its examples indented under a heading, each run of them once.

    >>> print(sectioned("Doubles.\\n\\n>>> twice(2)\\n4"))
    Doubles.
    <BLANKLINE>
    Examples:
        >>> twice(2)
        4
    """
    parts: list[str] = []
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith(">>>"):
            parts.append(paragraph)
            continue
        body = "\n".join(f"    {line}" for line in paragraph.splitlines())
        parts.append(
            body if parts and parts[-1].startswith(("Examples:", "    >>>")) else f"Examples:\n{body}"
        )
    return "\n\n".join(parts)
