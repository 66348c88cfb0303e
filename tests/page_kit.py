"""The pages of `superarm label` and `superarm play` on a real server, with a real browser before them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from service_browser import Browser
from service_kit import Web

from superarm.label.app import LabellingServer
from superarm.play.app import GameHandler, play

# the middle of an element, once it has been in the same place for a few frames and nothing covers it: else a click may
# miss it
POINT_OF = """(async () => {
  for (let before = "", still = 0; ; ) {
    const node = %s;
    node.scrollIntoView({ block: "center" });
    await new Promise(go => requestAnimationFrame(go));
    const box = node.getBoundingClientRect(), point = [box.x + box.width / 2, box.y + box.height / 2];
    still = `${point}` == before && node.contains(document.elementFromPoint(...point)) ? still + 1 : 0;
    before = `${point}`;
    if (still == 3) {
      window.clicked = false;
      node.addEventListener("click", () => { window.clicked = true; }, { capture: true, once: true });
      return point;
    }
  }
})()"""
KEY_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowUp": 38, "ArrowDown": 40}


class PageServer:
    """Serves a page in a thread of this process.

    Args:
        serve: serves it until it is cancelled, and tells its address to the function that it gets.
    """

    def __init__(self, serve: Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]) -> None:
        self.address, self._serve, self._ready = "", serve, threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),), daemon=True)

    async def _run(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            await self._serve(self._on_ready)
        except asyncio.CancelledError:
            return

    def _on_ready(self, address: str) -> None:
        self.address = address
        self._ready.set()

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1].strip("/"))

    def __enter__(self) -> PageServer:
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


class Command:
    """A command that serves a page, as a new user types it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command, pipe = [sys.executable, "-m", "superarm", *arguments, "--no-browser"], subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> str:
        """Press Ctrl-C, and return what it says then."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, out) == (0, ""), err
        assert "Traceback" not in err
        return err


def check_closed_to_strangers(web: Web, post: str) -> str:
    """Check that only a page on this machine gets answers, and return its content security policy.

    ``post``: a path for POST.
    """
    assert web("GET", "/")[0] == 200
    policy = {name.lower(): value for name, value in web.headers.items()}["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert web("GET", "/elsewhere")[0] == 404
    assert web("GET", "/", host="evil.example")[0] == 403
    assert web("POST", post, {}, Content_Type="text/plain")[0] == 415
    return policy


def serve_labelling(job: Any, **options: Any) -> PageServer:
    """Return a server of the page of a labelling, with options of `LabellingServer`."""
    return PageServer(partial(LabellingServer(**options).serve, job))


def serve_game(handler: GameHandler) -> PageServer:
    return PageServer(partial(play, handler, 0))


class Person(Browser):
    """A browser with somebody before it, at the mouse and the keyboard."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "profile")
        self.look(width=1280, dark=False)

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, address: str) -> None:
        """Open a page, and wait until something is on it."""
        self.open(address)
        self.settle()

    def settle(self) -> None:
        """Wait until the page waits for its user."""
        self.wait("state !== null && !busy", seconds=90)

    def press(self, selector: str) -> None:
        """Click on an element, with a mouse that goes there; and wait for what comes of it."""
        self._click(f"document.querySelector({selector!r})")

    def choose(self, text: str) -> None:
        """Click on the button of a labelling with this text."""
        buttons = "[...document.querySelectorAll('#choices button')]"
        self._click(f"{buttons}.find(button => button.lastChild.textContent == {text!r})")

    def _click(self, node: str) -> None:
        x, y = self.eval(POINT_OF % node)
        for kind, button in (("mouseMoved", "none"), ("mousePressed", "left"), ("mouseReleased", "left")):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)
        assert self.eval("window.clicked"), f"the click did not reach {node}"
        self.settle()

    def key(self, key: str, **modifiers: Any) -> None:
        """Press a key, as the keyboard sends it; and wait for what comes of it."""
        code = {"windowsVirtualKeyCode": KEY_CODES[key], "code": key} if key in KEY_CODES else {}
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, **typed, **code, **modifiers)
        self.settle()

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def text(self, id_: str) -> str:
        return str(self.eval(f"document.getElementById('{id_}').innerText"))

    def check_looks(self, folder: Path, name: str) -> None:
        """Check that the page fits and has its colours, on a desk and a phone; pictures of it go to SUPERARM_SHOTS."""
        shots = Path(os.environ.get("SUPERARM_SHOTS", folder))
        for width, height in ((1280, 900), (390, 844)):
            for dark in (False, True):
                self.look(width=width, dark=dark, height=height)
                time.sleep(0.3)
                assert self.eval("document.documentElement.scrollWidth <= innerWidth"), f"wide at {width}"
                paper = self.eval("getComputedStyle(document.body).backgroundColor")
                assert (max(map(int, paper[4:-1].split(","))) < 60) == dark
                self.screenshot(shots / f"{name}-{width}-{'dark' if dark else 'light'}.png")

    def question(self) -> dict[str, Any] | None:
        """Return the question of a labelling that the page shows."""
        return self.eval("state.question")
