"""A service with a token and short times: python attacked_server.py PORT JOURNAL; LIMITS is JSON."""

import json
import os
import sys

from superarm.service import asgi
from superarm.service.http.guard import Limits
from superarm.service.http.server import Listener, serve

if __name__ == "__main__":
    application = asgi(
        sys.argv[2],
        labels=[f"label-{i}" for i in range(int(os.environ.get("LABELS", "6")))],
        features=int(os.environ.get("FEATURES", "5")),
        set_size=2,
        token=os.environ.get("TOKEN"),
        rate_limit=1e6,
        log_requests="LOG_REQUESTS" in os.environ,
    )
    limits = Limits(**json.loads(os.environ.get("LIMITS", "{}")))
    serve(application, listener=Listener(port=int(sys.argv[1])), limits=limits)
