"""The service over HTTP: routes, limits, metrics, the dashboard."""
