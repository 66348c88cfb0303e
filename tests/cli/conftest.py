from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from superarm.cli import main


@pytest.fixture
def run_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run the whole command in this process; return its exit status, and its standard error."""

    def run(*arguments: str) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["superarm", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().err

    return run
