"""Progress on standard error: live in a terminal, lines in a log."""

from __future__ import annotations

import re
import sys

import pytest
from lab_kit import small_spec, write_spec

from superarm._progress import progress_bar
from superarm.errors import InvalidInput, MissingExtra
from superarm.experiments import Store, read_spec, run


def test_a_log_gets_lines_now_and_then(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    clock = iter([0.0, 4.0, 20.0, 20.0, 32.0, 32.0])
    monkeypatch.setattr("superarm._progress.monotonic", lambda: next(clock))
    details = iter(["1/3 runs", "2/3 runs, 1 failed"])
    with progress_bar(3000, "rounds of grid", lambda: next(details)) as tick:
        tick(500)
        assert capsys.readouterr().err == ""  # ten seconds have not passed
        tick(500)
        tick(1000)
    written = capsys.readouterr()
    assert written.err.splitlines() == [
        "1,000 of 3,000 rounds of grid, 50 a second, 0:00:40 left, 1/3 runs",
        "2,000 of 3,000 rounds of grid, 62 a second, 0:00:16 left, 2/3 runs, 1 failed",
    ]
    assert written.out == ""


def test_a_terminal_gets_a_live_line(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    clock = iter([0.0, 500.0, 500.0, 500.0])
    monkeypatch.setattr("superarm._progress.monotonic", lambda: next(clock))
    with progress_bar(2000, "bytes", lambda: "[1/2] files") as tick:
        tick(1000)
    written = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert " 50 %" in written
    assert "1,000 of 2,000 bytes, 2.0 a second, 0:08:20 left, [1/2] files" in written


def test_a_grid_tells_how_many_runs_are_done_and_how_many_failed(tmp_path, monkeypatch, capsys):
    """In a log, where the bar cannot be drawn."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr("superarm._progress.LOG_SECONDS", -1.0)
    (tmp_path / "own.py").write_text(
        "import superarm as sa\n"
        "class Broken(sa.Perceptron):\n"
        "    def run(self, *args, **options):\n"
        "        raise RuntimeError('no')\n"
    )
    text = 'rounds = 100\nseeds = 2\ndata = ["digits"]\nlearners = ["own.py:Broken", "pa"]\n'
    run(read_spec(write_spec(tmp_path, text)), Store(tmp_path / "s"), progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("100 of 400 rounds of grid, ")
    assert " a second, 0:00:0" in lines[0]
    assert lines[0].endswith(" left, 1/4 runs, 1 failed")
    assert lines[3].endswith(", 4/4 runs, 2 failed")


def test_the_report_is_opened_for_somebody_at_a_screen(tmp_path, monkeypatch, capsys):
    from superarm.cli.experiments import show_report

    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    show_report(tmp_path / "index.html")  # into a file or pipe: only the path
    assert opened == []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_report(tmp_path / "index.html")
    assert opened == [(tmp_path / "index.html").resolve().as_uri()]
    assert capsys.readouterr().out == f"{tmp_path / 'index.html'}\n" * 2


def test_missing_extras_say_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r'pip install "superarm\[dask\]"'):
        run(
            read_spec(small_spec(tmp_path)), Store(tmp_path / "s"), engine="dask", address="tcp://127.0.0.1:1"
        )
    from superarm.streams.vgg16 import make_features

    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(MissingExtra, match=r'pip install "superarm\[features\]"'):
        make_features("mnist")


def test_best_gammas_need_results(tmp_path):
    from superarm.experiments import best_gammas

    store = Store(tmp_path / "s")
    text = 'data = ["digits"]\nlearners = ["perceptron"]\nrounds = 20'
    run(read_spec(write_spec(tmp_path, text)), store)
    for path in (store.folder / "runs").iterdir():
        path.unlink()
    with pytest.raises(InvalidInput, match="one with results: run grid first"):
        best_gammas(store, "grid")


def test_labels_are_printed_as_they_are(capsys):
    """Neither as markup, which hid [a] and ended in a traceback at [/b], nor as an emoji."""
    from superarm.cli.output import print_note, print_table

    names = ["[a]", "[/b]", "[red]c", ":x:"]
    print_table("table [b]", ["label [b]", "rows"], [[name, "1"] for name in names])
    print_note(f"labels: {', '.join(names)}")
    out, err = capsys.readouterr()
    assert out.splitlines()[0].strip() == "table [b]"
    assert "label [b]" in out
    assert [line.split()[0] for line in out.splitlines()[2:]] == names
    assert err == "labels: [a], [/b], [red]c, :x:\n"
