"""The service over HTTP. The way of a request:

listener.py           a socket, with TLS or without
server.py             uvicorn on it; signals and systemd
connection_limits.py  how much, how slowly and how often a client may send
router.py             the route of a request (request.py), then its token (access.py) and its body (decoding.py)
routes.py             every route: a call of the service, a view of it, its metrics (metrics.py), or a page
                      (pages.py, openapi.py)

asgi.py is the application of these routes, which opens and closes the service; play/ and label/ have routes of their
own. json_logging.py writes log lines, watched_files.py reads files again when they have changed.
"""

from superarm._extras import require_extra

require_extra("serve")
