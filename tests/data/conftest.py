"""The service, for tests of every way in."""

from live_service import live  # noqa: F401
