"""The pages of docs/ as programs: run every block of one, compare or write down what it prints.

    python tests/doc_blocks.py docs/how-to.md      # run the page, and put real output into it

In a page,

    ```python                      runs; the blocks of a page share their names
    ```text      right after it    is what it printed
    # grid.toml  in its first line  makes any block a file of that name
    ```console                     "$ command" lines, each followed by what it prints
    <!-- needs torch -->           right before a Python block: it runs where that can be imported

The page runs in a folder of its own, with nothing downloaded. ``superarm serve`` stays in the background
until the page ends, on a free port in place of 8800.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.error import URLError
from urllib.request import urlopen

from ports import free_port

PORT = "8800"
# the pages whose output is compared; test_docs.py runs the others without looking at what they print
COMPARED = (
    "README",
    "index",
    "label",
    "tutorial-researcher",
    "tutorial-practitioner",
    "tutorial-data-scientist",
    "concepts",
    "expect",
    "how-to",
    "most-click-nothing",
    "rows",
    "choosing",
    "coverage",
    "own-models",
    "nightly",
    "networks",
    "embeddings",
    "coming-from",
    "partial-labels",
    "logs",
    "evaluation",
    "sklearn",
    "extend",
    "errata",
    "data",
    "experiments",
    "research",
)
FENCE = re.compile(r"^```(\S*)$")
NEEDS = re.compile(r"^<!-- needs (\w+) -->$")
FILE = re.compile(r"# ([\w-]+\.\w+)\n")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
ANY = re.compile(r"\b[0-9a-f]{16,}\b|\b\d+\.\d+ s\b")  # an id or a hash; seconds


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: lines[first:last] of its page."""

    kind: str
    file: str | None
    first: int
    last: int
    text: str
    needs: str | None = None

    @property
    def can_run(self) -> bool:
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


@dataclass(frozen=True, slots=True)
class Printed:
    """What a piece of a page printed, and what the page says: lines[first:last]."""

    what: str
    first: int
    last: int
    said: str
    got: str


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page."""
    lines, found, start = page.splitlines(), [], None
    for i, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence is None:
            continue
        if start is None:
            start = (i + 1, fence[1])
        else:
            first, kind = start
            text = "\n".join(lines[first:i]) + "\n"
            file = FILE.match(text)
            needs = NEEDS.match(lines[first - 2]) if first > 1 else None
            found.append(Block(kind, file and file[1], first, i, text, needs and needs[1]))
            start = None
    assert start is None, "a block without an end"
    return found


def run(path: Path, folder: Path) -> Iterator[Printed]:
    """Run a page in ``folder``, and hand out whatever has an output."""
    page = path.read_text(encoding="utf-8")
    all_blocks, lines = blocks(page), page.splitlines()
    names: dict[str, Any] = {"__name__": "__main__"}
    services: list[subprocess.Popen[bytes]] = []
    port = str(free_port())
    data_home = mock.patch.dict(os.environ, {"SUPERARM_DATA": "data-home"})
    with data_home, contextlib.chdir(folder), contextlib.ExitStack() as at_the_end:
        at_the_end.callback(lambda: [_end(service) for service in services])
        sys.path.insert(0, str(folder))  # as for a script in that folder
        at_the_end.callback(sys.path.remove, str(folder))
        for block, after in zip(all_blocks, [*all_blocks[1:], None], strict=True):
            if block.file is not None:
                Path(block.file).write_text(block.text.replace(PORT, port), encoding="utf-8")
            elif block.kind == "python" and block.can_run:
                # with the page's own lines in tracebacks
                code = compile("\n" * block.first + block.text.replace(PORT, port), str(path), "exec")
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(code, names)
                got = out.getvalue().replace(port, PORT)
                between = "".join(lines[block.last + 1 : after.first - 1]).strip() if after else "no text"
                if after is not None and after.kind == "text" and not between:
                    yield Printed(block.text, after.first, after.last, after.text, got)
                elif got:
                    raise AssertionError(f"{path.name}, line {block.first + 1}: prints\n{got}")
            elif block.kind == "console":
                yield from _console(block, port, services)


def _console(block: Block, port: str, services: list[subprocess.Popen[bytes]]) -> Iterator[Printed]:
    lines = block.text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        command, first = lines[at][2:], at + 1
        while command.endswith("\\"):
            command = command[:-1] + lines[first].strip()
            first += 1
        said = "\n".join(lines[first:end]) + ("\n" if first < end else "")
        if command.startswith("superarm serve"):
            services.append(_serve(command, port))
            got = ""
        else:
            got = _output(command.replace(PORT, port)).replace(port, PORT)
        yield Printed(command, block.first + first, block.first + end, said, got)


def _output(command: str) -> str:
    """Standard output of a command that must succeed."""
    if not command.startswith("superarm "):
        command = re.sub(r"^python ", f"{sys.executable} ", command)
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    import shlex

    from typer.testing import CliRunner

    from superarm.cli.app import app

    result = CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False)
    assert result.exit_code == 0, f"{command}: {result.output}"
    lines = "\n".join(line.rstrip() for line in result.stdout.splitlines()) + "\n"
    return lines.replace("data-home", "~/.cache/superarm")


def _serve(command: str, port: str) -> subprocess.Popen[bytes]:
    import shlex

    arguments = [sys.executable, "-m", "superarm", *shlex.split(command)[1:], "--port", port]
    with Path("service.log").open("wb") as log:
        service = subprocess.Popen(arguments, stderr=log)
    end = time.monotonic() + 300.0  # compiling, on a busy machine
    while time.monotonic() < end and service.poll() is None:
        with contextlib.suppress(URLError, OSError), urlopen(f"http://127.0.0.1:{port}/ready"):
            return service
        time.sleep(0.1)
    _end(service)
    raise AssertionError(f"{command} did not come up: {Path('service.log').read_text()}")


def _end(service: subprocess.Popen[bytes]) -> None:
    service.terminate()
    try:
        service.wait(30)
    except subprocess.TimeoutExpired:
        service.kill()
        service.wait()


def alike(said: str, got: str) -> bool:
    """The same words, and about the same numbers.

    Another CPU may round otherwise, and then a run takes another course: numbers may differ by
    a sixth or 0.03, small ones by a third. Those with a comma are counts and speeds of one machine, and may be any; so
    may seconds ("0.8 s"), ids and hashes.

    >>> alike("error 0.021  speed 120,000", "error 0.019 speed 5,000")
    True
    >>> alike("error 0.021", "error 0.12"), alike("a: 1", "b: 1")
    (False, False)
    """
    said, got = ANY.sub("any", said), ANY.sub("any", got)
    if NUMBER.sub("#", said).split() != NUMBER.sub("#", got).split():
        return False
    for a, b in zip(NUMBER.findall(said), NUMBER.findall(got), strict=True):
        if "," not in a + b and not close(float(a), float(b)):
            return False
    return True


def close(a: float, b: float) -> bool:
    """Whether two figures are about the same: a small one may differ by a third, a large one by a sixth or 0.03."""
    return abs(a - b) <= max(0.003, abs(a) / 6, min(0.03, abs(a) / 3))


def missing(path: Path) -> list[str]:
    """What blocks of a page need and this machine lacks."""
    page = blocks(path.read_text(encoding="utf-8"))
    return sorted({block.needs for block in page if block.needs and not block.can_run})


def fill(path: Path) -> None:
    """Run a page, and write what it prints into it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        for printed in reversed(list(run(path.resolve(), Path(folder)))):
            lines[printed.first : printed.last] = printed.got.rstrip("\n").splitlines()
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "120"
    for name in sys.argv[1:]:
        fill(Path(name))
