from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from superarm.cli import main

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command in this process: its exit code, and what it says on standard error."""

    def run_here(*args: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["superarm", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, " ".join(capsys.readouterr().err.split())

    return run_here
