"""The command line: parse, call, print."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The ``superarm`` command."""
    from superarm.cli.app import app
    from superarm.errors import SuperarmError

    try:
        app(prog_name="superarm")
    except SuperarmError as error:
        print(f"superarm: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("superarm: interrupted", file=sys.stderr)
        sys.exit(130)
