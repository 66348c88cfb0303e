"""The n-th write, fsync, rename or removal fails: full, broken, cut short, killed, or the power goes.

The way SQLite tests itself; fault_worker.py has the workload and the list of invariants. Here some of the
n, in turn; `python benchmarks/soak.py --every-operation` runs all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KIT = Path(__file__).parent


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here to build the disk that fails")
    library = tmp_path_factory.mktemp("disk") / "failing_disk.so"
    source = KIT / "failing_disk.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library


@pytest.mark.parametrize(
    ("hows", "every"),
    [(["full", "full once", "broken", "stays broken", "short"], 13), (["kill"], 7), (["power"], 7)],
)
@pytest.mark.slow
def test_whatever_fails_nothing_acknowledged_is_lost(failing_disk, tmp_path, hows, every):
    # in memory, where there is such a place: the faults are made by the library, not by the disk
    root = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
    folder = root / f"superarm-disk-{os.getpid()}"
    source = str(Path(__file__).parents[2] / "src")
    environment = os.environ | {"LD_PRELOAD": str(failing_disk), "DISK_FOLDER": str(folder)}
    environment["PYTHONPATH"] = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, KIT / "fault_worker.py", str(every), *hows]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        cases = json.loads(done.stdout)
        assert cases.keys() == set(hows)
        assert all(count * every > 200 for count in cases.values()), cases
    finally:
        shutil.rmtree(folder, ignore_errors=True)
