"""Notifications for systemd, from a service of `Type=notify`: ready, alive, stopping."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Notify systemd, if it has started us."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        try:
            channel.connect(address)
            channel.send(state.encode())
        except OSError:  # systemd is gone: nothing to do
            return


def watchdog_seconds() -> float | None:
    """Return the interval of the watchdog notifications: half of its timeout; None without a watchdog."""
    span, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    if not span.isdecimal() or (process is not None and process != str(os.getpid())):
        return None
    return int(span) / 2e6
