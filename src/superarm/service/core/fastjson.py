"""JSON for the service."""

from orjson import JSONDecodeError, dumps, loads

__all__ = ["JSONDecodeError", "dumps", "loads"]
