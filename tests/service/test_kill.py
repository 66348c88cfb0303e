"""kill -9 at random moments under load: nothing acknowledged is lost, and the model is the journal's.

The whole server is killed, each time a fork of a process that has already imported everything
(fork_server.py), so that a restart takes a tenth of a second; three more times it is the real
command in a process of its own.
"""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from service_kit import LABELS, D, Web, kill, rows, serve_command

from superarm.journal.backends import open_store
from superarm.journal.records import DecisionRecord
from superarm.journal.replay import replay
from superarm.service.client.client import Client, ServiceError

KILLS = 50
CLIENTS = 6
OPTIONS = {"labels": LABELS, "n_features": D, "set_size": 2, "snapshot_every": 400, "keep_snapshots": 2}


class Load:
    """Clients that send decisions and outcomes until the server is gone, and note what was acknowledged."""

    def __init__(self, url: str, turn: int) -> None:
        self.decided: dict[str, tuple[str, ...]] = {}
        self.answered: dict[str, bool] = {}
        self.refusals: list[ServiceError] = []
        self.threads = [threading.Thread(target=self.run, args=(url, turn, i)) for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, url: str, turn: int, number: int) -> None:
        dice = random.Random(turn * 100 + number)
        xs = rows(50, seed=turn)
        with Client(url, retries=0, timeout=5) as client:
            try:
                for i in range(100_000):
                    id_ = f"{turn}.{number}.{i}"
                    shown = client.decide(xs[i % 50].tolist(), id=id_)
                    self.decided[id_] = shown.labels
                    if dice.random() < 0.8:
                        hit = dice.random() < 0.5
                        client.outcome(id_, hit=hit)
                        self.answered[id_] = hit
            except ServiceError as error:
                if error.status is not None:  # only "cannot be reached" is fine
                    self.refusals.append(error)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()
        assert self.refusals == []


def check(web: Web, journal: Path, load: Load) -> None:
    """Against the restarted server and against the file."""
    web.wait()
    status, model = web.get("/v1/model")
    assert status == 200
    looking = open_store(journal, read_only=True)
    done = replay(looking)
    assert done.same
    assert done.sha256 == hashlib.sha256(model).hexdigest()
    for id_, labels in load.decided.items():
        record = DecisionRecord.from_events(looking.events_by_id([id_]).get(id_, ()))
        assert record is not None, f"decision {id_} was acknowledged and is lost"
        assert tuple(record.body.labels) == labels
        if id_ in load.answered:
            assert record.outcome is not None, f"the outcome of {id_} was acknowledged and is lost"
            assert record.outcome.body.hit is load.answered[id_]
    looking.close()


@pytest.mark.slow
def test_fifty_kills_lose_nothing(fork_server, tmp_path):
    journal, dice = tmp_path / "events.db", random.Random(1)
    pid, web = fork_server.start(journal, **OPTIONS)
    total = 0
    for turn in range(KILLS):
        web.wait()
        load = Load(web.url, turn)
        time.sleep(dice.uniform(0.02, 0.25))
        kill(pid)
        load.join()
        total += len(load.decided) + len(load.answered)
        pid, web = fork_server.start(journal, **OPTIONS)
        check(web, journal, load)
    assert total > 500, "there was hardly any load"
    kill(pid)
    looking = open_store(journal, read_only=True)
    assert replay(looking, from_start=True).same
    looking.close()


def start_command(folder: Path, log: Path) -> tuple[subprocess.Popen[bytes], Web]:
    command, web = serve_command(folder)
    with log.open("ab") as out:
        return subprocess.Popen(command, stdout=out, stderr=out), web


def test_the_command_itself(tmp_path):
    journal, log = tmp_path / "events.db", tmp_path / "log"
    process, web = start_command(tmp_path, log)
    try:
        for turn in range(3):
            web.wait(60)
            load = Load(web.url, turn)
            while len(load.decided) < 20:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            load.join()
            assert load.decided
            process, web = start_command(tmp_path, log)
            web.wait(60)
            check(web, journal, load)
        # gracefully: what has begun is finished, and a snapshot makes the next start short
        load = Load(web.url, 99)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        load.join()
    finally:
        process.kill()
        process.wait()
    # before the log begins, the command says in words that it has made a new journal
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert "journal" in log.read_text().splitlines()[0]
    assert lines[-2]["message"] != "upkeep failed"
    assert any(line["message"] == "closed" for line in lines[-5:])
    looking = open_store(journal, read_only=True)
    assert looking.snapshots()[-1].seq == looking.head().seq
    assert looking.events_by_id(list(load.decided)).keys() >= load.decided.keys()
    looking.close()
