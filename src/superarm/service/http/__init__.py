"""The service over HTTP: routes, limits, metrics, the dashboard."""

from superarm._extras import require_extra

require_extra("serve")
