"""A service with a token and short times: python attacked_server.py PORT JOURNAL; LIMITS is JSON."""

import json
import os
import sys

from superarm.http.access import Tokens
from superarm.http.connection_limits import Limits
from superarm.http.listener import Listener
from superarm.service import Service
from superarm.service.serve import serve

if __name__ == "__main__":
    serve(
        lambda: Service.open(
            sys.argv[2],
            labels=[f"label-{i}" for i in range(int(os.environ.get("LABELS", "6")))],
            n_features=int(os.environ.get("FEATURES", "5")),
            set_size=2,
        ),
        Tokens(master_token=os.environ.get("TOKEN")),
        listener=Listener(port=int(sys.argv[1])),
        limits=Limits(**json.loads(os.environ.get("LIMITS", "{}"))),
        rate_limit=1e6,
        log_requests="LOG_REQUESTS" in os.environ,
    )
