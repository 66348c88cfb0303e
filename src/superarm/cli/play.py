"""superarm play: teach it yourself, in the browser."""

from __future__ import annotations

from superarm.cli.options import AnyPort, OpenPage
from superarm.cli.output import print_address


def play(port: AnyPort = 0, browser: OpenPage = True) -> None:
    """Teach SetLogit to read digits, in the browser: say whether the digit is among three, or is not.

    Nothing leaves this machine, and nothing is kept. Ctrl-C ends it.

    Example: **superarm play**
    """
    import asyncio
    from contextlib import suppress
    from functools import partial

    from superarm.play.app import GameHandler
    from superarm.play.app import play as serve

    with suppress(KeyboardInterrupt):  # the usual way to end it
        asyncio.run(serve(GameHandler(), port, partial(print_address, "Ctrl-C ends it.", browser)))
