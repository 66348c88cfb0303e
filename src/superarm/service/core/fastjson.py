"""JSON for the service; in one place, so that a missing extra is told in words."""

from superarm.errors import MissingExtra

try:
    from orjson import JSONDecodeError, dumps, loads
except ImportError as error:
    raise MissingExtra("the service needs orjson: pip install 'superarm[serve]'") from error

__all__ = ["JSONDecodeError", "dumps", "loads"]
