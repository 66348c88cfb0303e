from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from superarm.cli import main


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in this process, which must end with this code, and return what it says on standard error."""

    def run_here(*args: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["superarm", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            main()
        message = " ".join(capsys.readouterr().err.split())
        assert end.value.code == code, message
        return message

    return run_here
