"""A headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from ports import free_port
from websockets.sync.client import connect

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Navigated(Exception):
    """The page is on its way to another."""


class Browser:
    """One page."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        port = free_port()
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]
        flags += [f"--remote-debugging-port={port}", f"--user-data-dir={folder}"]
        flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        command = [CHROMIUM, *flags, "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack = ExitStack()
        self.stack.callback(self.end)
        try:
            self.reach(port)
        except BaseException:
            self.stack.close()
            raise

    def reach(self, port: int) -> None:
        until = time.monotonic() + 40
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=5) as answer:
                    pages = [p for p in json.loads(answer.read()) if p["type"] == "page"]
                if pages:
                    break
            except OSError:
                pass
            assert time.monotonic() < until, "chromium did not come up"
            time.sleep(0.1)
        self.socket = self.stack.enter_context(connect(pages[0]["webSocketDebuggerUrl"], max_size=2**26))
        self.number, self.events = 0, list[dict[str, Any]]()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=30))
            if message.get("id") == self.number:
                if "navigated" in message.get("error", {}).get("message", ""):
                    raise Navigated
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def look(self, *, width: int, dark: bool, height: int = 900, scale: float = 1) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait(f"location.href == {url!r} && document.readyState == 'complete'")

    def eval(self, code: str) -> Any:
        result = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, code: str, seconds: float = 15.0) -> None:
        until = time.monotonic() + seconds
        while True:
            with suppress(Navigated):  # the old page went away while it was asked
                if self.eval(code):
                    return
            assert time.monotonic() < until, f"never true: {code}"
            time.sleep(0.1)

    def screenshot(self, path: Path, clip: dict[str, float] | None = None) -> None:
        """The whole page, or the part of it in ``clip``."""
        part = {} if clip is None else {"clip": {**clip, "scale": 1}}
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, **part)
        data = shot["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors in the console, and requests to anywhere else."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            if event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            if event["method"] == "Runtime.consoleAPICalled" and params["type"] == "error":
                found.append(str(params["args"]))
            if event["method"] == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(
                    ("http://127.0.0.1:", "blob:http://127.0.0.1:", "about:", "data:", "file:")
                ):
                    found.append(f"a request to {url}")
        return found

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def close(self) -> None:
        self.stack.close()
