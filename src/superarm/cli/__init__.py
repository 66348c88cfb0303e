"""The command line: parse, call, print.

A command is in the file of its name, but for run, reproduce, report and demo (experiments.py), decide and learn
(nightly.py), what is done with a journal (journal.py), and play, traffic, theory and bench (tools.py).

app.py              which commands there are
options.py          options that several of them have
output.py           what they print and write
typer_extensions.py options from the fields of a dataclass or from a file; one given twice is refused
"""

from __future__ import annotations

import signal
import sys
import warnings
from io import TextIOWrapper

__all__ = ["main"]

# exit codes
FAILED = 2
INTERRUPTED = 130  # what shells expect of a program that Ctrl-C ended


def main() -> None:
    """The ``superarm`` command: errors in one sentence, and a quiet end after Ctrl-C."""
    if sys.argv[1:2] == ["serve"] and sys.platform != "win32":
        # importing takes a second, in which either of these would end the service
        signal.signal(signal.SIGHUP, lambda *_: None)
        signal.signal(signal.SIGUSR1, lambda *_: None)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that knows no ± gets a question mark
            stream.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *_, **__: f"WARNING: {message}\n"  # without our source line
    try:
        from superarm.cli.app import app
        from superarm.cli.typer_extensions import UsageError, usage_message
        from superarm.errors import SuperarmError

        try:
            sys.exit(app(prog_name="superarm", standalone_mode=False) or 0)
        except UsageError as error:
            message = usage_message(error)
        except SuperarmError as error:
            message = str(error)
        except (OSError, UnicodeDecodeError) as error:  # a file that is not there, or is not text
            message = _file_message(error)
        if message:
            print(f"superarm: {message}", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.unraisablehook = lambda _: None  # what is only half made may complain as it goes
        sys.exit(INTERRUPTED)


def _file_message(error: OSError | UnicodeDecodeError) -> str:
    """Return what is wrong with a file, in one sentence."""
    if isinstance(error, UnicodeDecodeError):
        return f"text must be UTF-8, got the byte 0x{error.object[error.start]:02x} at {error.start}"
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename is not None else reason
