"""Every Python block of README.md and docs/*.md runs, in order per file; commands exist with their flags.

A block after the line ``<!-- run -->`` with ``console`` commands is run, too, in the same folder.
A Python block after ``<!-- no run: why -->`` is not. A Python block that asks
http://127.0.0.1:8800 gets a service of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from doc_blocks import COMPARED
from ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@cache
def command_line() -> Any:
    from superarm.cli.app import app

    return typer.main.get_command(app)


def blocks(page: Path, *kinds: str) -> list[re.Match[str]]:
    return [match for match in BLOCK.finditer(page.read_text(encoding="utf-8")) if match["kind"] in kinds]


def commands(text: str) -> list[list[str]]:
    """The superarm commands after $ prompts, with lines that end in a backslash joined."""
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = [line[2:] for line in joined.splitlines() if line.startswith("$ superarm ")]
    return [shlex.split(line.partition(" #")[0])[1:] for line in lines]


SERVICE = """
import subprocess, sys, time, urllib.request
open("labels.txt", "w").write("a\\nb\\nc\\nd\\n")
call = [sys.executable, "-m", "superarm", "serve", "--labels", "labels.txt", "--features", "64"]
serving = subprocess.Popen([*call, "--set-size", "2", "--journal", "docs.db", "--port", "PORT"])
import atexit
atexit.register(serving.terminate)
for _ in range(3000):
    try:
        urllib.request.urlopen("http://127.0.0.1:PORT/ready").close()
        break
    except OSError:
        time.sleep(0.1)
"""


def script_of(page: Path) -> list[str]:
    """What a page does, as lines of Python."""
    text = page.read_text(encoding="utf-8")
    lines: list[str] = []
    for block in blocks(page, "python", "console"):
        before, mark, code = text[: block.start("text")], block["mark"] or "", block["text"]
        if block["kind"] == "console" and mark == "run":
            for arguments in commands(code):
                call = [sys.executable, "-m", "superarm", *arguments]
                lines.append(f"import subprocess; subprocess.run({call!r}, check=True)")
        elif block["kind"] == "python" and not mark.startswith("no run:"):
            if "http://127.0.0.1:8800" in code:  # it wants a running service: a new one, at a free port
                port = str(free_port())
                service = SERVICE.replace("PORT", port)
                if "client.decide(scores=" in code:  # one that takes scores of digits
                    service = service.replace(
                        "a\\nb\\nc\\nd\\n", "".join(f"{digit}\\n" for digit in range(10))
                    )
                    service = service.replace('"--features", "64"', '"--learner", "scores"')
                lines.append(service)
                code = code.replace("8800", port)
            # the page's own line numbers in a traceback
            padded = "\n" * before.count("\n") + code
            lines.append(f"exec(compile({padded!r}, {str(page)!r}, 'exec'))")
    return lines


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.stem not in COMPARED and blocks(p, "python")],
    ids=lambda page: page.name,
)
def test_the_python_of_a_page_runs(page, tmp_path):
    script = script_of(page)
    (tmp_path / "page.py").write_text("\n".join(script), encoding="utf-8")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_exist(page):
    known = command_line()
    for block in blocks(page, "", "console", "sh", "bash"):
        for arguments in commands(block["text"]):
            group, words = known, list(arguments)
            while hasattr(group, "commands") and words and not words[0].startswith("-"):
                name = words.pop(0)
                assert name in group.commands, f"{page.name}: superarm has no command {name}"
                group = group.commands[name]
                if hasattr(group, "commands"):  # such as the URL of superarm change
                    del words[: sum(p.param_type_name == "argument" for p in group.params)]
            options = {
                flag for parameter in group.params for flag in (*parameter.opts, *parameter.secondary_opts)
            }
            for word in words:
                if word.startswith("--"):
                    flag = word.partition("=")[0]
                    assert flag in {*options, "--help"}, f"{page.name}: superarm {arguments[0]} has no {flag}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_fits_on_its_page(page):
    """At 1280 pixels without scrolling (docs/assets/site.css); what commands print is folded."""
    for block in blocks(page, "python", "sh", "bash", "toml", "yaml", "cython"):
        assert [line for line in block["text"].splitlines() if len(line) > 112] == []


def test_there_is_something_to_test():
    assert any(blocks(page, "python") for page in PAGES)
    assert commands("$ superarm train a.csv \\\n    --passes 2  # twice\nout") == [
        ["train", "a.csv", "--passes", "2"]
    ]


def _anchors(page: Path) -> set[str]:
    """The anchors that MkDocs and GitHub make of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [re.sub(r"\{#.*\}|[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"\s", "-", heading) for heading in plain} | {
        re.sub(r"[\s-]+", "-", heading) for heading in plain
    }


def test_links_between_pages_lead_somewhere():
    for page in {*PAGES, *ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md")}:
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in _anchors(file), f"{page.name} links to {target}#{anchor}"
