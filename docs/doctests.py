"""For the site: examples in docstrings become a section of their own, as mkdocstrings wants them; learners and rules
get the parameters that their base classes add.

Our docstrings end in lines with ``>>>``; to Markdown these would be quotations. The site is made from the sources,
which say common parameters once (`superarm.parameters.Parametrised`).
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """``>>>`` paragraphs under the heading "Examples:"."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if isinstance(obj, griffe.Class) and obj.path.startswith(("superarm.learners.", "superarm.explore.")):
            complete(obj)
        if obj.docstring is not None:
            obj.docstring.value = sectioned(obj.docstring.value)


def complete(found: griffe.Class) -> None:
    """Give a learner or a rule the whole docstring and signature that its class has."""
    cls = getattr(importlib.import_module(found.module.path), found.name)
    if "__signature__" not in vars(cls) or found.docstring is None:
        return
    found.docstring.value = inspect.getdoc(cls) or ""
    init = found.members.get("__init__")
    if isinstance(init, griffe.Function):
        parameters = inspect.signature(cls).parameters.values()
        keyword = griffe.ParameterKind.keyword_only
        init.parameters = griffe.Parameters(
            griffe.Parameter("self"),
            *(
                griffe.Parameter(p.name, kind=keyword, default=repr(p.default), annotation=str(p.annotation))
                for p in parameters
            ),
        )


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
