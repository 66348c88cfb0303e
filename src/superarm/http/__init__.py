"""An HTTP server for applications of routes: the service's, and the pages of label and play. The way of a request:

listener.py           a socket, with TLS or without
server.py             uvicorn on it; systemd
connection_limits.py  how much, how slowly and how often a client may send
router.py             the route of a request (request.py), then its token (access.py) and its body (decoding.py)
http_errors.py        what is refused, and the response to any error
pages.py              HTML, with the script and the style that all pages share

json_logging.py writes log lines, watched_files.py reads files again when they have changed.
"""

from superarm._extras import require_extra

require_extra("serve")
