"""Learners by the names that the command line and spec files use."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from superarm import learners
from superarm.errors import InvalidInput, Unquoted
from superarm.explore.rule import Rule
from superarm.learners import Learner, Scores
from superarm.parameters import existing_file


def learners_by_name() -> dict[str, tuple[type[Learner], dict[str, Any]]]:
    """Built-in learners by name, with the parameters that each name stands for; not `Scores`, which learns nothing.

    In the order of tables: learners that are told the label, that show one label, that show sets.
    """
    offered = [value for value in vars(learners).values() if isinstance(value, type)]
    classes = [
        cls for cls in offered if issubclass(cls, Learner) and hasattr(cls, "name") and cls is not Scores
    ]
    names = {cls: cls.variants or {cls.name: {}} for cls in classes}
    pairs = [(name, (cls, fixed)) for cls in classes for name, fixed in names[cls].items()]
    return dict(sorted(pairs, key=lambda pair: (*_table_order(pair[1][0]), pair[0])))


def _table_order(cls: type[Learner]) -> tuple[bool, bool]:
    return "hit" in cls.feedback, not cls.shows_one_label


def parse(spec: str | Any) -> tuple[type[Learner], dict[str, Any]]:
    """Return the class and parameters behind ``name:key=value,key=value`` or ``file.py:Class:key=value``.

    >>> parse("mc-dbf:estimate=set,gamma=0.2")
    (<class 'superarm.learners.mcdbf.MCDBF'>, {'estimate': 'set', 'gamma': 0.2})
    """
    if not isinstance(spec, str):
        wanted = "a name with parameters, as in 'set-logit:coverage=0.9'"
        raise InvalidInput.must("learner", "superarm", wanted, spec)
    name, _, rest = spec.partition(":")
    if is_file_spec(spec):
        class_name, _, rest = rest.partition(":")
        cls, fixed = _from_file(Path(name), class_name, Learner), dict[str, Any]()
    elif name == Scores.name:
        cls, fixed = Scores, {}
    elif name in learners_by_name():
        cls, fixed = learners_by_name()[name]
    else:
        wanted = f"one of {', '.join(learners_by_name())}, or file.py:Class"
        raise InvalidInput.must("learner", "superarm", wanted, name, choices=learners_by_name())
    return cls, fixed | parse_params(rest, "learner", "superarm", spec)


def parse_params(text: str, parameter: str, owner: str, spec: str) -> dict[str, Any]:
    """Return the parameters behind ``key=value,key=value``, the end of a spec; an error names all of it."""
    params = {}
    for part in text.split(",") if text else []:
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidInput.must(parameter, owner, "name:key=value,key=value", spec)
        params[key.strip()] = parse_value(value.strip())
    return params


def make(spec: str, **common: Any) -> Learner:
    """Return a learner from its spec; parameters in the spec win over ``common``."""
    cls, own = parse(spec)
    params = {**common, **own}
    if is_file_spec(params.get("explore")):
        params["explore"] = make_rule(params["explore"])
    return cls(**params)


def is_file_spec(spec: Any) -> bool:
    """Return whether a spec, or a parameter, names a class in a user's own file: ``file.py:Class``."""
    return isinstance(spec, str) and spec.partition(":")[0].endswith(".py")


def names_user_code(spec: str) -> bool:
    """Return whether a learner's spec names a user's own file: ``file.py:Class``, ``name:explore=file.py:Class``."""
    return ".py:" in spec


def import_user_code(spec: str) -> dict[str, Any]:
    """Import the learner and the rule that a spec names; return its parameters but for a rule in a user's file."""
    _, params = parse(spec)
    if is_file_spec(params.get("explore")):
        make_rule(params.pop("explore"))
    return params


def make_rule(spec: str, parameter: str = "explore", owner: str = "superarm") -> Rule:
    """Return a rule in a user's own file, from ``file.py:Class:key=value:key=value``.

    Commas may stand between the pairs, where the spec is not itself a parameter of a learner's.
    """
    name, _, rest = spec.partition(":")
    class_name, _, pairs = rest.partition(":")
    cls: type[Rule] = _from_file(Path(name), class_name, Rule)
    params = parse_params(pairs.replace(":", ","), parameter, owner, spec)
    try:
        return cls(**params)
    except TypeError as error:
        raise InvalidInput.must(parameter, owner, "a rule with its own parameters", spec) from error


def parse_value(text: str) -> Any:
    """Return a parameter's value as written on the command line."""
    yes, no = dict.fromkeys(("true", "yes", "on"), True), dict.fromkeys(("false", "no", "off"), False)
    words = yes | no | {"none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _from_file(path: Path, class_name: str, base: type[Any]) -> Any:
    """Return a class of learners or rules in a user's own file."""
    module = _module(existing_file(path).resolve(), path.stat().st_mtime_ns)
    cls = getattr(module, class_name, None)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        wanted = f"the name of a {base.__name__} class in it"
        raise InvalidInput.must(base.__name__.lower(), str(path), wanted, class_name)
    return cls


@lru_cache(maxsize=64)
def _module(path: Path, modified: int) -> Any:
    """Return a user's file, by its full path, as a module; executed once in each process, and when it has changed.

    As for a script, it can import what lies in its folder.
    """
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    digest = blake2b(bytes(path), digest_size=4).hexdigest()  # files in two folders may have one name
    module_name = f"superarm_user_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        got = Unquoted(f"{error.msg}, in line {error.lineno}")
        raise InvalidInput.must("content", str(path), "Python", got) from error
    except Exception as error:
        got = Unquoted(f"{type(error).__name__}: {error}")
        raise InvalidInput.must("content", str(path), "Python that can be imported", got) from error
    return module
