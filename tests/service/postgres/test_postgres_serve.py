"""The real command on a real PostgreSQL, as it logs by itself: nothing fails behind the requests' back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from ports import free_port
from service_kit import LABELS, D, Web, rows, soon

from superarm.journal.backends import open_store
from superarm.journal.verify import verify


@pytest.fixture
def command(database, tmp_path):
    """`superarm serve` on a new journal: its journal, a way to talk to it, its process, its log."""
    url, port, log = database.fresh(), free_port(), tmp_path / "log"
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    options = ["--journal", url, "--port", port, "--labels", tmp_path / "labels.txt", "--features", D]
    options += ["--set-size", 2, "--timeout", "1s", "--default-outcome", "miss", "--snapshot-every", 3]
    with log.open("wb") as out:
        arguments = [sys.executable, "-m", "superarm", "serve", *map(str, options)]
        process = subprocess.Popen(arguments, stdout=out, stderr=out)
    try:
        yield url, Web(port).wait(60), process, log
    finally:
        process.kill()
        process.wait()


def test_timeouts_expire_and_snapshots_are_written_without_a_problem(command):
    url, web, process, log = command
    for i, x in enumerate(rows(4)):
        assert web.post("/v1/decisions", {"features": x.tolist(), "id": f"d{i}"})[0] == 200
    assert web.post("/v1/decisions/d0/outcome", {"hit": True})[0] == 200
    soon(lambda: web.get("/v1/decisions/d3")[1]["state"] == "expired")
    soon(lambda: written_snapshots(url))
    status, ready = web.get("/ready")
    assert (status, ready) == (200, {"status": "ready"})
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert {"ready", "snapshot", "closed"} <= {line["message"] for line in lines}
    assert [line for line in lines if line["level"] in ("error", "critical")] == []
    assert verify(url).problems == []


def written_snapshots(url):
    """The snapshots beside the first."""
    store = open_store(url, read_only=True)
    try:
        return [info.seq for info in store.snapshots() if info.seq > 0]
    finally:
        store.close()
