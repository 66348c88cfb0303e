"""A kill does not lose the page cache, so it cannot prove durability: here every fsync is counted and held.

A small shared library, loaded before all others, counts fdatasync and fsync, and lets them wait while
a file called "gate" exists: an answer must not come before the fsync that carries it has returned.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time

import pytest
from service_kit import D, Web, serve_command

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int wait_and_count(const char *name, int fd) {
    static const char mark = '.';
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *gate = getenv("FSYNC_GATE"), *log = getenv("FSYNC_LOG");
    while (gate && access(gate, F_OK) == 0) usleep(1000);
    int result = real(fd);
    int out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (out >= 0) { if (write(out, &mark, 1) < 0) {} close(out); }
    return result;
}

int fsync(int fd) { return wait_and_count("fsync", fd); }
int fdatasync(int fd) { return wait_and_count("fdatasync", fd); }
"""


@pytest.fixture
def shim(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here to build the library that counts fsyncs")
    (tmp_path / "shim.c").write_text(SHIM)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c", "-ldl"], check=True
    )
    return tmp_path / "shim.so"


def test_every_answer_waits_for_its_fsync(shim, tmp_path):
    gate, log = tmp_path / "gate", tmp_path / "fsyncs"
    command, web = serve_command(tmp_path)
    environment = os.environ | {"LD_PRELOAD": str(shim), "FSYNC_GATE": str(gate), "FSYNC_LOG": str(log)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        web.wait(60)
        web.post("/v1/decisions", {"features": [0] * D, "id": "first"})

        # one after another: at least one fsync for each answer
        for method, path, body in (
            ("POST", "/v1/decisions", lambda i: {"features": [i] * D, "id": f"d{i}"}),
            ("POST", "/v1/decisions/d{}/outcome", lambda i: {"hit": True}),
        ):
            for i in range(10):
                before = log.stat().st_size
                assert web(method, path.format(i), body(i))[0] == 200
                assert log.stat().st_size > before, "answered without an fsync"

        # while fsync is held, nobody is answered
        answers: list[int] = []
        for path, body in (
            ("/v1/decisions", {"features": [0] * D, "id": "held"}),
            ("/v1/decisions/held/outcome", {"hit": False}),
        ):
            gate.touch()
            answers.clear()
            asking = threading.Thread(
                target=lambda p=path, b=body: answers.append(Web(web.port).post(p, b)[0])
            )
            asking.start()
            time.sleep(0.5)
            assert answers == [], "answered before the fsync had returned"
            assert web.get("/health")[0] == 200  # looking goes on
            if body.get("id") == "held":
                assert web.get("/v1/decisions/held")[0] == 404  # what is not durable is not shown
            gate.unlink()
            asking.join(20)
            assert answers == [200]

        # many at once share an fsync, but none goes without
        before, count = log.stat().st_size, 64
        gate.touch()
        crowd = [
            threading.Thread(
                target=lambda i=i: answers.append(
                    Web(web.port).post("/v1/decisions", {"features": [i] * D})[0]
                )
            )
            for i in range(count)
        ]
        for thread in crowd:
            thread.start()
        time.sleep(0.5)
        assert len(answers) == 1
        gate.unlink()
        for thread in crowd:
            thread.join(20)
        assert answers == [200] * (1 + count)
        assert 1 <= log.stat().st_size - before < count
    finally:
        gate.unlink(missing_ok=True)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
