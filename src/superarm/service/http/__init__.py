"""The service over HTTP.

server.py    an application on uvicorn: socket, TLS, signals, systemd; connection_limits.py: its connections
asgi.py      Application: the service behind its routes; router.py: any table of routes; request.py: Request, Response
routes.py    every route; decoding.py: bodies to requests; views.py: what GET requests return; pages.py, openapi.py
access.py    tokens and roles, host names, rates; watched_files.py: files that are read again when they have changed
metrics.py   for Prometheus; json_logging.py: log lines
"""

from superarm._extras import require_extra

require_extra("serve")
