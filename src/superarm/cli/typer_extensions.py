"""Commands whose options may be the fields of a dataclass or stand in a file, and that refuse one given twice."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from superarm.errors import InvalidInput, Unquoted, must

TEXT = ("a text or a number", (str, int, float))  # what an option takes from TOML, if nothing below says more
TOML_TYPES: dict[Any, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
}
UsageError: Any = typer.BadParameter.__base__  # of click, or of Typer's copy of it


def usage_message(error: Any) -> str:
    """Return what is wrong with the arguments of a command, in one sentence; empty where its help was printed."""
    kind = type(error).__name__
    context = error.ctx
    if kind == "NoArgsIsHelpError":
        return ""
    if kind == "NoSuchOption":
        options = [name for option in context.command.params for name in option.opts]
        wanted = "one that its --help lists"
        return must("option", context.command_path, wanted, error.option_name, choices=options)
    message = error.format_message()
    hint = "" if context is None else f" ({context.command_path} --help)"
    return f"{message[:1].lower()}{message[1:].rstrip('.')}{hint}"


class Command(TyperCommand):
    """A command that refuses an option given twice, unless it may be repeated, and one of no such name in variables."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if (prefix := ctx.auto_envvar_prefix) is not None and "--help" not in args:
            known = [f"{prefix}_{option.name}".upper() for option in self.params]
            for variable in os.environ.keys() - known:
                if variable.startswith(f"{prefix}_"):
                    wanted = "one of an option that its --help lists"
                    raise InvalidInput.must("variable", ctx.command_path, wanted, variable, choices=known)
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
                raise InvalidInput.must(option, ctx.command_path, "given once", Unquoted(f"{count} times"))
        return super().parse_args(ctx, args)


class App(typer.Typer):
    """A `typer.Typer` whose commands are of the class `Command`."""

    def command(  # type: ignore[override]
        self, *args: Any, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        register = super().command(*args, **{"cls": Command, **options})
        return lambda command: register(with_fields_as_options(command))


def with_fields_as_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the fields of each parameter of a dataclass as options, in that place."""
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            kind = groups[parameter.name] = parameter.annotation
            hints = get_type_hints(kind, include_extras=True)
            parameters += [
                parameter.replace(name=field.name, default=field.default, annotation=hints[field.name])
                for field in fields(kind)
            ]
        else:
            parameters.append(parameter)
    if not groups:
        return command

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def read_config(context: typer.Context, parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """Let a TOML file give the defaults of all other options of a command."""
    if path is None or context.resilient_parsing:
        return path
    command = f"superarm {context.info_name}"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput.must("--config", command, "a TOML file", Unquoted(f"{path}: {error}")) from error
    known = {option.name: option for option in context.command.params if option.name != parameter.name}
    hints = get_type_hints(context.command.callback)
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if isinstance(value, dict):
            raise InvalidInput.must(key, str(path), "an option, no table", value)
        if name not in known:
            raise InvalidInput.must(key, str(path), "left out: there is no such option", value)
        option: Any = known[name]
        defaults[name] = [value] if option.multiple and not isinstance(value, list) else value
        kinds = {hints[name], *get_args(hints[name])}
        wanted, accepted = next((TOML_TYPES[kind] for kind in TOML_TYPES if kind in kinds), TEXT)
        for one in defaults[name] if option.multiple else [value]:
            if type(one) not in accepted:
                raise InvalidInput.must(key, str(path), wanted, one)
        try:
            option.process_value(context, defaults[name])
        except (typer.BadParameter, TypeError, ValueError) as error:
            wanted = f"what --{name.replace('_', '-')} takes ({getattr(error, 'message', error)})"
            raise InvalidInput.must(key, str(path), wanted, value) from error
    context.default_map = {**defaults, **(context.default_map or {})}
    return path
