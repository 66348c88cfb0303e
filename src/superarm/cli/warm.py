"""superarm warm: compile ahead, for an image or a first request."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def warm(
    learner: Annotated[
        list[str] | None,
        typer.Option(help="NAME, NAME:key=value or file.py:Class; may be repeated. Default: set-logit."),
    ] = None,
    sparse: Annotated[bool, typer.Option("--sparse", help="For sparse rows, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Compile learners now, so that nobody waits for it later.

    What is compiled is kept: beside the package, or in **NUMBA_CACHE_DIR** if that is set, else in the
    user's cache folder. It is for this version of superarm and this kind of processor.

    Example: **superarm warm --learner set-logit --learner mc-dbf**
    """
    from time import perf_counter

    from superarm.cli.show import tell
    from superarm.learners.registry import make
    from superarm.learners.warming import cache_folder, warm_up

    seconds, folder = {}, None
    for spec in dict.fromkeys(learner or ["set-logit"]):
        began = perf_counter()
        for kind in (False, True) if sparse else (False,):
            made = make(spec, n_labels=4, n_features=3)
            warm_up(made, sparse=kind)
            folder = cache_folder(made)
        seconds[spec] = round(perf_counter() - began, 1)
        if not as_json:
            print(f"{spec}: ready after {seconds[spec]} s")
    if as_json:
        print(json.dumps({"seconds": seconds, "folder": folder}))
    elif folder is not None:
        print(f"kept in {folder}")
    else:
        tell("superarm: nothing was kept, no folder for it can be written: set NUMBA_CACHE_DIR to one")
