"""The service on PostgreSQL: `benchmarks/service.py --journal postgresql` prints it beside SQLite.

    processes        1, 2, 3 of them under the same load: pairs/s, p50, p99, the CPU of a pair by who used it
    model_age_ms     how old the last event was that the deciding model knew
    learner_alone    how many answers a second a process can project, with nobody else
                     (python benchmarks/postgres.py [--pairs 40000] [--rows dense] prints only this)
    batches          the CPU of a pair in the process that serves it and in one that follows, by the size of batches
                     (python benchmarks/postgres.py --batches prints only this)

The database is one that this starts, with fsync, over a Unix socket.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SAMPLE = 20_000  # decisions whose model's age is looked at


def cpu_of(pids: list[int]) -> float:
    """Seconds that processes have used, with the children they have waited for."""
    used = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used += sum(map(int, fields[11:15]))
    return used / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and its children: a server of PostgreSQL and its backends."""
    pids = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        pids += map(int, (task / "children").read_text().split())
    return pids


def measure(
    start: Callable[[str, int], Any], load: Callable[..., Any], *, clients: int, features: int, seconds: float
) -> dict[str, object]:
    """All of it; ``start(url, number)`` starts a server and gives its process and port."""
    sys.path[:0] = [str(ROOT / "tests" / "service")]
    from postgres_kit import Database

    database = Database(fsync=True, memory=False)
    report: dict[str, object] = {}
    try:
        for count in (1, 2, 3):
            url = database.fresh()
            started = [start(url, number) for number in range(count)]
            try:
                ports = [port for _, port in started]
                load(ports, clients, features, 1.0)
                assert database.process is not None
                servers = [process.pid for process, _ in started]
                before = cpu_of(servers), cpu_of(family(database.process.pid))
                got = load(ports, clients, features, seconds)
                after = cpu_of(servers), cpu_of(family(database.process.pid))
                pairs = got["pairs_per_second"] * seconds
                report[f"{count} processes"] = {key: round(value, 1) for key, value in got.items()} | {
                    "servers_cpu_us_per_pair": round(1e6 * (after[0] - before[0]) / pairs),
                    "database_cpu_us_per_pair": round(1e6 * (after[1] - before[1]) / pairs),
                    "model_age_ms": model_age(url),
                }
            finally:
                for process, _ in started:
                    process.terminate()
                for process, _ in started:
                    process.wait()
        report["learner_alone"] = learner_alone(database, features)
    finally:
        database.close()
    return report


def model_age(url: str) -> dict[str, float]:
    """Between the last event that a model knew and the decisions that it made, newest decisions first."""
    from orjson import loads

    from superarm.journal.postgres_connection import Address

    with Address(url, statement_timeout=60.0).connect() as connection:
        sql = "SELECT seq, time, body FROM superarm.events WHERE kind = 1 ORDER BY seq DESC LIMIT %s"
        decisions = connection.execute(sql, (SAMPLE,), binary=True).fetchall()
        known = [loads(body)["model_seq"] for _, _, body in decisions]
        sql = "SELECT seq, time FROM superarm.events WHERE seq = ANY(%s)"
        times = dict(connection.execute(sql, (sorted(set(known)),)).fetchall())
    ages = sorted(
        max(0.0, when - times[seq])
        for (_, when, _), seq in zip(decisions, known, strict=True)
        if seq in times
    )
    if not ages:
        return {}
    return {
        name: round(1e3 * ages[int(len(ages) * share)], 1) for name, share in (("p50", 0.5), ("p99", 0.99))
    }


def learner_alone(database: Any, features: int, pairs: int = 40_000, kind: str = "dense") -> dict[str, float]:
    """Decisions and answers of another process, and one that projects them: its processor time, and the rest."""
    from journal import LABELS, decide_and_answer, rows_of, tune_garbage_collector

    from superarm import SetLogit
    from superarm.journal.postgres import PostgresStore
    from superarm.service.follower import JournalFollower
    from superarm.service.service import Service
    from superarm.service.settings import Settings

    tune_garbage_collector()
    url = database.fresh()
    width, rows = rows_of(kind, features)
    service = Service.open(url, labels=LABELS, n_features=width, set_size=3)
    began = time.perf_counter()
    for start in range(0, pairs, 250):
        decide_and_answer(service, rows, start, 250)
    written = time.perf_counter() - began
    service.store.close()  # without a snapshot
    store = PostgresStore(url)
    server = family(database.process.pid)
    before, began, used = cpu_of(server), time.perf_counter(), time.thread_time()
    model = JournalFollower(store, Settings())  # as a process that starts, or was away
    took, cpu = time.perf_counter() - began, time.thread_time() - used
    databases = cpu_of(server) - before
    assert model.projector.totals.stats.learnt == pairs
    store.close()
    learner = SetLogit(labels=LABELS, n_features=width, set_size=3)
    learner.update(learner.decide(rows[0]), hit=True)
    used = time.process_time()
    for i in range(pairs // 4):
        learner.update(learner.decide(rows[i % 1000]), hit=i % 2 == 0)
    library = (time.process_time() - used) / (pairs // 4)
    return {
        "cpu_of_a_round_in_the_library_us": round(1e6 * library, 1),
        "cpu_us_per_answer": round(1e6 * cpu / pairs, 1),
        "answers_per_second_of_a_core": round(pairs / cpu),
        "database_cpu_us_per_answer": round(1e6 * databases / pairs, 1),
        "wall_us_per_answer": round(1e6 * took / pairs, 1),
        "answers_per_second": round(pairs / took),
        "one_process_writes_pairs_per_second": round(pairs / written),
    }


def batches(database: Any, features: int = 64, sizes: tuple[int, ...] = (4, 8, 16, 64)) -> None:
    """Print the CPU of a pair, in µs, the least of five times: served here; read, and projected, by another process."""
    from journal import LABELS, rows_of, tune_garbage_collector

    from superarm.service import DecisionRequest, OutcomeRequest
    from superarm.service.commit_queue import Call
    from superarm.service.service import Service

    url = database.fresh()
    width, rows = rows_of("dense", features)
    options: dict[str, Any] = {"labels": LABELS, "n_features": width, "set_size": 3}
    serves, follows = (Service.open(url, **options) for _ in range(2))
    tune_garbage_collector()
    for size in sizes:
        best, ids = [float("inf")] * 3, list[str]()
        for _ in range(5):
            spent = [0.0] * 3
            for batch in range(100):
                calls = [Call(DecisionRequest(rows[(batch * size + i) % 1000])) for i in range(size)]
                outcomes = (OutcomeRequest(id_, hit=i % 2 == 0) for i, id_ in enumerate(ids))
                calls += [Call(outcome) for outcome in outcomes]
                times = [time.thread_time()]
                done = serves.commit(calls)
                times.append(time.thread_time())
                events = list(follows.store.events(follows.follower.projector.seq))
                times.append(time.thread_time())
                follows.follower.projector.project(events)
                times.append(time.thread_time())
                ids = [one.result.id for one in done[:size]]
                spent = [total + b - a for total, (a, b) in zip(spent, pairwise(times), strict=True)]
            best = [min(old, new / (100 * size)) for old, new in zip(best, spent, strict=True)]
        names = ("serve", "read", "project")
        print(size, {name: round(1e6 * least, 1) for name, least in zip(names, best, strict=True)})
    for service in (serves, follows):
        service.close()


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests" / "service")]
    from postgres_kit import Database

    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=40_000)
    parser.add_argument("--rows", choices=["dense", "sparse", "mixed", "names"], default="dense")
    parser.add_argument("--batches", action="store_true")
    arguments = parser.parse_args()
    database = Database(fsync=True, memory=False)
    try:
        if arguments.batches:
            batches(database)
        else:
            print(learner_alone(database, 64, arguments.pairs, arguments.rows))
    finally:
        database.close()
