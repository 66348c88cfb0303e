"""Progress on standard error: live in a terminal, lines in a log."""

from __future__ import annotations

import sys

import pytest
from lab_kit import small_spec, write_spec

from superarm._progress import progress_bar
from superarm.errors import InvalidInput, MissingExtra
from superarm.experiments import Store, read_spec, run


def test_a_log_gets_lines_now_and_then(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with progress_bar(3000, "rounds of grid") as tick:
        tick(1000)
    assert capsys.readouterr().err == ""  # ten seconds have not passed
    monkeypatch.setattr("superarm._progress.LOG_SECONDS", -1.0)
    with progress_bar(3000, "rounds of grid") as tick:
        tick(1000)
        tick(1000)
    written = capsys.readouterr()
    assert written.err == "1,000 of 3,000 rounds of grid\n2,000 of 3,000 rounds of grid\n"
    assert written.out == ""


def test_a_terminal_gets_a_live_line(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    with progress_bar(2000, "bytes") as tick:
        tick(1000)
    assert "1,000 of 2,000 bytes" in capsys.readouterr().err


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
