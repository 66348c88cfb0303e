"""The service over HTTP: routes, limits, metrics, the dashboard."""

from superarm.extras import need

need("serve")
