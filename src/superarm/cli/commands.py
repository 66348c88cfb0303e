"""Commands that refuse an option given twice: only the last would count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from superarm.errors import InvalidInput


class Command(TyperCommand):
    """A command each of whose options is given once, but for those that are made to be repeated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        once = {
            name: option.opts[0]
            for option in self.params
            if isinstance(option, TyperOption) and not option.multiple and not option.is_flag
            for name in option.opts
        }
        given = args[: args.index("--")] if "--" in args else args
        counts = Counter(once.get(arg.partition("=")[0]) for arg in given)
        for option, count in counts.items():
            if option is not None and count > 1:
                raise InvalidInput.must(option, ctx.command_path, "given once", f"{count} times")
        return super().parse_args(ctx, args)


class App(typer.Typer):
    """A `typer.Typer` of such commands."""

    def command(  # type: ignore[override]
        self, *args: Any, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return super().command(*args, **{"cls": Command, **options})
