"""Every Python block of README.md and docs/*.md runs, in order per file; commands exist with their flags.

A block after the line ``<!-- run -->`` with ``console`` commands is run, too, in the same folder.
A Python block after ``<!-- no run: why -->`` is not.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
ROOMS = {"serve": "service", "replay": "service", "export": "service", "traffic": "service"}


def blocks(page: Path, *kinds: str) -> list[re.Match[str]]:
    return [match for match in BLOCK.finditer(page.read_text(encoding="utf-8")) if match["kind"] in kinds]


def commands(text: str) -> list[list[str]]:
    """The superarm commands after $ prompts, with lines that end in a backslash joined."""
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = [line[2:] for line in joined.splitlines() if line.startswith("$ superarm ")]
    return [shlex.split(line.partition(" #")[0])[1:] for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page, tmp_path):
    found = [b for b in blocks(page, "python", "console") if not (b["mark"] or "").startswith("no run:")]
    steps = [b for b in found if b["kind"] == "python" or b["mark"] == "run"]
    if not any(b["kind"] == "python" for b in steps):
        pytest.skip(f"{page.name} has no Python block")
    script = []
    for block in steps:
        if block["kind"] == "python":
            line = page.read_text(encoding="utf-8")[: block.start("text")].count("\n")
            # the page's own line numbers in a traceback
            script.append(f"exec(compile({chr(10) * line + block['text']!r}, {str(page)!r}, 'exec'))")
        else:
            for arguments in commands(block["text"]):
                call = [sys.executable, "-m", "superarm", *arguments]
                script.append(f"import subprocess; subprocess.run({call!r}, check=True)")
    (tmp_path / "page.py").write_text("\n".join(script), encoding="utf-8")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_exist(page):
    from superarm.cli.app import app

    known = typer.main.get_command(app)
    for block in blocks(page, "console", "sh", "bash"):
        for arguments in commands(block["text"]):
            group, words = known, list(arguments)
            while hasattr(group, "commands") and words and not words[0].startswith("-"):
                name = words.pop(0)
                room = ROOMS.get(name)
                if room and importlib.util.find_spec(f"superarm.{room}") is None:
                    pytest.skip(
                        f"the {room} is not part of this checkout, so `superarm {name}` is not checked"
                    )
                assert name in group.commands, f"{page.name}: superarm has no command {name}"
                group = group.commands[name]
            options = {
                flag for parameter in group.params for flag in (*parameter.opts, *parameter.secondary_opts)
            }
            for word in words:
                if word.startswith("--"):
                    flag = word.partition("=")[0]
                    assert flag in {*options, "--help"}, f"{page.name}: superarm {arguments[0]} has no {flag}"


def test_there_is_something_to_test():
    assert any(blocks(page, "python") for page in PAGES)
    assert commands("$ superarm train a.csv \\\n    --passes 2  # twice\nout") == [
        ["train", "a.csv", "--passes", "2"]
    ]


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_site_builds(tmp_path):
    call = [sys.executable, str(ROOT / "docs" / "make_site.py"), str(tmp_path)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    home = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Learn a classifier from yes/no answers" in home
    pages = {page.stem: (tmp_path / f"{page.stem}.html").read_text(encoding="utf-8") for page in PAGES[1:]}
    assert set(run.stdout.split()) == {str(tmp_path / f"{name}.html") for name in ("index", "api", *pages)}
    reference = (tmp_path / "api.html").read_text(encoding="utf-8")
    for name in ("superarm.SetLogit", "superarm.logs.evaluate", "superarm.sklearn.SetFeedbackClassifier"):
        assert f">{name}</h3>" in reference
    for text in (home, *pages.values()):
        assert "http" not in "".join(re.findall(r"<(?:link|script|img)[^>]*>", text)), (
            "the site needs no network"
        )
        for target in re.findall(r'href="([^":]+?)(?:#[^"]*)?"', text):
            assert target.startswith("#") or (tmp_path / target).exists() or (ROOT / target).exists(), target
    for name, text in pages.items():
        for anchor in re.findall(r'href="#([^"]+)"', text):
            assert f'id="{anchor}"' in text, (name, anchor)
