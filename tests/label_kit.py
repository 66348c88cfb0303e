"""The page of `superarm label` on a real server, with a real browser before it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from service_browser import Browser

from superarm.label.app import LabellingServer

# the middle of an element, once it has been in the same place for a few frames: else a click may miss it
STANDING_STILL = """(async () => {
  for (let before = "", still = 0; ; ) {
    const node = %s;
    node.scrollIntoView({ block: "center" });
    await new Promise(go => requestAnimationFrame(go));
    const box = node.getBoundingClientRect(), here = [box.x + box.width / 2, box.y + box.height / 2];
    still = `${here}` == before ? still + 1 : 0;
    if (still == 3) return here;
    before = `${here}`;
  }
})()"""


class Server:
    """`superarm label` in a thread of this process."""

    def __init__(self, job: Any, **options: Any) -> None:
        self.job, self.options, self.address = job, options, ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)

    async def _serve(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()

        def ready(address: str) -> None:
            self.address = address
            self._ready.set()

        try:
            await LabellingServer(**self.options).serve(self.job, ready)
        except asyncio.CancelledError:
            return

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1].strip("/"))

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


class Labeller:
    """A browser with the page in it."""

    def __init__(self, folder: Path) -> None:
        self.browser = Browser(folder / "profile")

    def __enter__(self) -> Labeller:
        self.browser.look(width=1280, dark=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.browser.close()

    def open(self, address: str) -> None:
        self.browser.open(address)
        self.wait()

    def wait(self) -> None:
        self.browser.wait("state !== null && !busy", seconds=60)

    def press(self, code: str) -> None:
        """Click on what ``code`` evaluates to, with a mouse that goes there; and wait for what comes of it."""
        box = self.browser.eval(STANDING_STILL % code)
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.send(
                "Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1
            )
        self.wait()

    def choose(self, text: str) -> None:
        """Click on the button with this text."""
        found = f"[...document.querySelectorAll('#choices button')].find(b => b.lastChild.textContent == {text!r})"
        self.press(found)

    def key(self, key: str, **modifiers: Any) -> None:
        """A key, as the keyboard sends it."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, " ": 32}
        extra = {"windowsVirtualKeyCode": codes[key], "code": key} if key in codes else {}
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            text = {"text": "\r"} if kind == "keyDown" and key == "Enter" else text
            self.browser.send("Input.dispatchKeyEvent", type=kind, key=key, **text, **extra, **modifiers)
        self.wait()

    def type(self, text: str) -> None:
        self.browser.send("Input.insertText", text=text)

    def text(self, id_: str) -> str:
        return str(self.browser.eval(f"document.getElementById('{id_}').innerText"))

    def question(self) -> dict[str, Any] | None:
        return self.browser.eval("state.question")
