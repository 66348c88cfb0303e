"""The Python client, which needs no extra, and simulated users of it."""
