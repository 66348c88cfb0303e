"""A service under load, killed and broken again and again: nothing acknowledged may be lost.

    python benchmarks/soak.py [--kills 1000] [--faults 20] [--every-operation]
    python benchmarks/soak.py --journal postgresql [--rounds 200]

--kills             SIGKILL at random moments under load; then a restart, and a look at every acknowledged id
--faults            so many of each kind (full disk, I/O error, short write, kill, power cut), spread over the
                    operations of the workload in tests/journal/fault_worker.py
--every-operation   each kind at every single operation of it, until none fails

--journal postgresql   three processes on a database that this starts: in each round something happens to them
                    under load (tests/service/postgres_chaos.py), then the history of every request is checked

Prints one JSON object; ends with status 1 at the first thing that is lost. A short version of both is in
tests/service/test_kill.py, tests/journal/test_disk.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
KIT, JOURNAL = ROOT / "tests" / "service", ROOT / "tests" / "journal"
KINDS = ("full", "full once", "broken", "stays broken", "short", "kill", "power")


def kills(count: int, folder: Path) -> dict[str, float]:
    """The load and the checks of test_kill.py, as often as asked for."""
    sys.path[:0] = [str(KIT), str(JOURNAL), str(KIT.parent)]
    from service_kit import ForkServer
    from test_kill import OPTIONS, Load, check, kill

    fork_server, journal, dice = ForkServer(folder), folder / "events.db", random.Random(7)
    began, acknowledged = time.perf_counter(), 0
    pid, web = fork_server.start(journal, **OPTIONS)
    try:
        for turn in range(count):
            web.wait()
            load = Load(web.url, turn)
            time.sleep(dice.uniform(0.02, 0.25))
            kill(pid)
            load.join()
            acknowledged += len(load.decided) + len(load.answered)
            pid, web = fork_server.start(journal, **OPTIONS)
            check(web, journal, load)
            if turn % 50 == 49:
                print(f"{turn + 1} kills, {acknowledged:,} acknowledged, none lost", file=sys.stderr)
    finally:
        kill(pid)
        fork_server.close()
    return {"kills": count, "acknowledged": acknowledged, "seconds": round(time.perf_counter() - began)}


def rounds(count: int, folder: Path) -> dict[str, object]:
    """The accidents and the history of test_postgres_chaos.py, as often as asked for."""
    sys.path[:0] = [str(KIT), str(KIT.parent)]
    from postgres_chaos import KINDS, Cluster
    from postgres_kit import Database
    from service_kit import ForkServer

    database, fork_server, dice = Database(fsync=True), ForkServer(folder), random.Random(11)
    began, totals, happened = time.perf_counter(), Counter[str](), Counter[str]()
    try:
        cluster = Cluster(fork_server, database)
        for number in range(count):
            if number and number % 20 == 0:  # the whole past is checked after every round: not for ever
                cluster.close()
                cluster = Cluster(fork_server, database)
            kind = dice.choice(KINDS)
            happened[kind] += 1
            history = cluster.rounds([kind], seed=number, calm=dice.uniform(0.05, 0.5))
            totals.update({key: history[key] for key in ("attempts", "acknowledged", "not known", "refused")})
            if number % 10 == 9:
                print(f"{number + 1} rounds, {dict(totals)}", file=sys.stderr)
        cluster.close()
    finally:
        fork_server.close()
        database.close()
    seconds = round(time.perf_counter() - began)
    return {"rounds": count, **happened, **totals, "seconds": seconds}


def faults(every: int, folder: Path) -> dict[str, int]:
    library = folder / "failing_disk.so"
    source = JOURNAL / "failing_disk.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else folder
    place = memory / f"superarm-soak-{os.getpid()}"
    paths = os.pathsep.join([str(ROOT / "src"), str(KIT), str(JOURNAL), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"LD_PRELOAD": str(library), "DISK_FOLDER": str(place), "PYTHONPATH": paths}
    command = [sys.executable, str(JOURNAL / "fault_worker.py"), str(every), *KINDS]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if done.returncode:
        raise SystemExit(1)
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--faults", type=int, default=20, help="of each kind, spread over the workload")
    parser.add_argument("--every-operation", action="store_true")
    parser.add_argument("--journal", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--rounds", type=int, default=200, help="of accidents, with --journal postgresql")
    arguments = parser.parse_args()
    report: dict[str, object] = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("SUPERARM_BENCH_DIR")) as name:
        if arguments.journal == "postgresql":
            print(json.dumps({"postgresql": rounds(arguments.rounds, Path(name))}))
            return
        if arguments.faults or arguments.every_operation:
            every = 1 if arguments.every_operation else max(1, 334 // arguments.faults)
            report["faults"] = faults(every, Path(name))
        if arguments.kills:
            report["kill -9"] = kills(arguments.kills, Path(name))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
