from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import pytest

from superarm.cli import main


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in this process, which must end with this code, and return its warnings and notes."""

    def run_here(*args: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["superarm", *map(str, args)])
        with (
            warnings.catch_warnings(record=True, action="always") as caught,
            pytest.raises(SystemExit) as end,
        ):
            main()
        notes = [*(f"WARNING: {warning.message}" for warning in caught), capsys.readouterr().err]
        message = " ".join(" ".join(notes).split())
        assert end.value.code == code, message
        return message

    return run_here
