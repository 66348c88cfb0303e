"""superarm change: what an operator changes while a service runs."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

from typer import Argument, Context, Option

from superarm.cli.options import AsJson, OlderThan, erased_before
from superarm.cli.output import print_json
from superarm.cli.typer_extensions import App

app = App(
    help="Change a running service; each change is an event of its journal.\n\n"
    "A token (role operate) is read from the environment variable SUPERARM_TOKEN.\n\n"
    "Example: **superarm change http://127.0.0.1:8800 add-label weather**",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
Labels = Annotated[list[str], Argument(help="Labels.")]


@app.callback()
def _root(
    context: Context,
    url: Annotated[str, Argument(help="The service: http://127.0.0.1:8800 or unix:/path.")],
    as_json: AsJson = False,
) -> None:
    from superarm.service.client.client import Client

    client = Client(url, token=os.environ.get("SUPERARM_TOKEN"), timeout=600.0)
    context.call_on_close(client.close)
    context.obj = client, as_json


def _change(context: Context, method: str, *arguments: Any, **options: Any) -> None:
    """Call a method of the client, and print its result."""
    client, as_json = context.obj
    result = getattr(client, method)(*arguments, **options)
    if as_json:
        print_json(result)
        return
    shown, disabled = len(result["labels"]) - len(result["disabled"]), len(result["disabled"])
    parts = {
        f"{result['what']}: event {result['seq']:,}": True,
        f"{shown:,} labels shown": True,
        f"{disabled:,} disabled": disabled > 0,
        "learning is frozen": result["frozen"],
        f"{result['erased']:,} decision{'s' * (result['erased'] != 1)} erased": result["what"] == "erase",
        "not finished: some of it is still on the disk; the service tries again": not result["finished"],
    }
    print("; ".join(text for text, applies in parts.items() if applies))


@app.command("add-label")
def add_label(context: Context, labels: Labels) -> None:
    """Add labels, to be shown from now on; disabled ones come back.

    Example: **superarm change http://127.0.0.1:8800 add-label weather**
    """
    _change(context, "add_labels", labels)


@app.command("disable-label")
def disable_label(context: Context, labels: Labels) -> None:
    """Never show these labels again; outcomes about them are still accepted.

    Example: **superarm change http://127.0.0.1:8800 disable-label weather**
    """
    _change(context, "disable_labels", labels)


@app.command()
def freeze(context: Context) -> None:
    """Keep outcomes, and learn nothing from them.

    Example: **superarm change http://127.0.0.1:8800 freeze**
    """
    _change(context, "freeze")


@app.command()
def unfreeze(context: Context) -> None:
    """Learn again, from the outcomes that come from now on.

    Example: **superarm change http://127.0.0.1:8800 unfreeze**
    """
    _change(context, "unfreeze")


@app.command()
def explore(
    context: Context,
    explore: Annotated[str | None, Argument(help="As the learner's parameter: a word or a number.")] = None,
    uniform: Annotated[float | None, Option(help="The uniform share.", min=0, max=1)] = None,
) -> None:
    """Explore more or less.

    Example: **superarm change http://127.0.0.1:8800 explore 0.5**
    """
    _change(context, "set_explore", explore=_number_or_word(explore), uniform=uniform)


@app.command()
def rollback(
    context: Context, event: Annotated[int, Argument(help="The event of a kept snapshot.", min=0)]
) -> None:
    """Restore the weights of a kept snapshot; nothing else is undone.

    Example: **superarm change http://127.0.0.1:8800 rollback 50000**
    """
    _change(context, "rollback", event)


@app.command()
def erase(
    context: Context,
    ids: Annotated[list[str] | None, Argument(help="Ids of decisions.")] = None,
    older: OlderThan = None,
) -> None:
    """Erase features and context of decisions: by id, or all that are older than a time.

    Example: **superarm change http://127.0.0.1:8800 erase order-4711**
    """
    before = erased_before(older, ids, "superarm change … erase", "ids")
    _change(context, "erase", ids=ids or None, before=before)


@app.command("list")
def list_(context: Context) -> None:
    """List the changes so far, and the snapshots to go back to.

    Example: **superarm change http://127.0.0.1:8800 list**
    """
    client, as_json = context.obj
    changes, snapshots = client.changes(), client.snapshots()
    if as_json:
        print_json({"changes": changes, "snapshots": snapshots})
        return
    for change in changes:
        details = {name: value for name, value in change.items() if name not in ("seq", "time", "what")}
        print(f"event {change['seq']:,} at {_utc(change['time'])}: {change['what']} {details or ''}".rstrip())
    for snapshot in snapshots:
        seq, when, version = snapshot["seq"], _utc(snapshot["time"]), snapshot["superarm"]
        print(f"snapshot after event {seq:,} at {when}, by superarm {version}")


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _number_or_word(text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
