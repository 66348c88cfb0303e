"""A real Dask cluster: a scheduler and two workers as processes, one of which is killed mid-run."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab_kit import ROOT, results, small_data, write_spec

from superarm.errors import InvalidInput
from superarm.experiments import Store, read_spec, run, runner

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None,
        reason="Dask is not installed: pip install superarm[dask]",
    ),
    pytest.mark.slow,
]
LEARNERS = Path(__file__).parents[1] / "lab_learners.py"


@pytest.fixture
def cluster(tmp_path):
    """The scheduler's address and the workers' processes."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    }
    started = []

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *arguments]
        with (tmp_path / f"dask{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path))
        return started[-1]

    file = tmp_path / "scheduler.json"
    start("scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
    wait_for(file.exists, "a scheduler")
    workers = [
        start("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard")
        for _ in range(2)
    ]
    address = json.loads(file.read_text())["address"]
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(2, timeout=120)
    yield address, workers
    for process in started:  # nothing of theirs is worth a quiet end
        process.kill()
        process.wait()


def wait_for(condition, what):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within two minutes"
        time.sleep(0.05)


def test_a_lost_worker_loses_nothing_and_results_equal_the_local_ones(tmp_path, cluster, monkeypatch):
    address, workers = cluster
    (tmp_path / "own.py").write_text(LEARNERS.read_text())
    small_data(tmp_path)
    text = """
rounds = 400
seeds = 6
set_sizes = [2]
data = ["mine.npz"]
learners = ["mc-dbf", "own.py:Slow", "own.py:Breaks"]
"""
    spec = read_spec(write_spec(tmp_path, text))
    there, here = Store(tmp_path / "there"), Store(tmp_path / "here")
    done, killed = [], []

    def kill_one(rounds):
        done.append(rounds)
        if len(done) >= 2 and not killed:
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)

    summary = run(spec, there, engine="dask", address=address, progress=kill_one)
    assert killed
    assert workers[0].wait(20) == -signal.SIGKILL
    assert (summary.executed, [f.run.seed for f in summary.failures]) == (18, [1])
    assert "seed 1 breaks" in summary.failures[0].error
    monkeypatch.setenv("LAB_HURRY", "1")
    run(spec, here)
    assert results(there) == results(here)
    assert len(results(there)) == 17


def test_no_scheduler_there(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "TIMEOUT", "1s")
    text = 'data = ["digits"]\nlearners = ["mc-dbf"]\nrounds = 10'
    spec = read_spec(write_spec(tmp_path, text))
    with pytest.raises(InvalidInput, match="address of engine dask must be a running Dask scheduler's"):
        run(spec, Store(tmp_path / "s"), engine="dask", address="tcp://127.0.0.1:1")
