"""The service over HTTP: routes, limits, metrics, the dashboard."""

from superarm._extras import need

need("serve")
