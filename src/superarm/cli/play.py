"""superarm play: teach it yourself, in the browser."""

from __future__ import annotations

from typing import Annotated

import typer


def play(
    port: Annotated[int, typer.Option(help="The port to listen on; 0: any free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Teach SetLogit to read digits, in the browser: say whether the digit is among three, or is not.

    Nothing leaves this machine, and nothing is kept. Ctrl-C ends it.

    Example: **superarm play**
    """
    import asyncio
    from threading import Thread

    from superarm.cli.show import open_page, tell
    from superarm.play.app import Play
    from superarm.play.app import play as serve

    def ready(address: str) -> None:
        print(address, flush=True)
        tell("Ctrl-C ends it.")
        if browser:  # some browsers do not return before they are closed
            Thread(target=open_page, args=(address,), daemon=True).start()

    try:
        asyncio.run(serve(Play(), port, ready))
    except KeyboardInterrupt:  # the usual way to end it
        return
