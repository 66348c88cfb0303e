"""A game of `superarm play` on a real server, with a real browser before it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from service_browser import Browser

from superarm.play.app import GameHandler, play
from superarm.play.game import Game


class Server:
    """`superarm play` in a thread of this process."""

    def __init__(self) -> None:
        self.play, self.address = GameHandler(), ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)

    async def _serve(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()

        def ready(address: str) -> None:
            self.address = address
            self._ready.set()

        try:
            await play(self.play, 0, ready)
        except asyncio.CancelledError:
            return

    def __enter__(self) -> Server:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it; a second time does nothing."""
        if not self._thread.is_alive():
            return
        assert self._task is not None
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(20)
        assert not self._thread.is_alive()


class Table:
    """A server and a browser."""

    def __init__(self, folder: Path) -> None:
        self.server, self.folder = Server(), folder

    def __enter__(self) -> Table:
        self.server.__enter__()
        self.browser = Browser(self.folder / "profile")
        return self

    def __exit__(self, *_: object) -> None:
        self.browser.close()
        self.server.stop()

    @property
    def game(self) -> Game:
        return self.server.play.game

    def open(self) -> None:
        self.browser.open(self.server.address)
        self.wait()

    def wait(self) -> None:
        self.browser.wait("state !== null && !busy", seconds=90)

    def press(self, button: str) -> None:
        """Click, and wait for what comes of it."""
        self.browser.eval(f"document.getElementById('{button}').click()")
        self.wait()

    def key(self, key: str, **modifiers: Any) -> None:
        """A key, as the keyboard sends it."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self.browser.send("Input.dispatchKeyEvent", type=kind, key=key, **text, **modifiers)
        self.wait()

    def text(self, id_: str) -> str:
        return str(self.browser.eval(f"document.getElementById('{id_}').innerText"))
