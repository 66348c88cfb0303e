"""The commands serve, replay, export and traffic."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
from service_kit import LABELS, D, rows
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.errors import InvalidInput, MissingExtra
from superarm.service.core.faults import JournalForeign
from superarm.service.core.session import Ask, Reply
from superarm.service.http import server


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def served(monkeypatch):
    """What would have been served."""
    seen = []

    def instead(open_session, **options):
        seen.append((open_session(), options))

    monkeypatch.setattr(server, "serve", instead)
    monkeypatch.delenv("SUPERARM_TOKEN", raising=False)
    yield seen
    for session, _ in seen:
        session.close()


@pytest.fixture
def label_file(tmp_path):
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n\n")
    return tmp_path / "labels.txt"


def test_serve(served, label_file, tmp_path):
    words = [
        "serve",
        "--labels",
        label_file,
        "--features",
        D,
        "--set-size",
        3,
        "--journal",
        tmp_path / "e.db",
    ]
    run(*words, "--timeout", "60", "--default-outcome", "miss", "--learner", "mc-dbf:gamma=0.2")
    session, options = served[0]
    assert session.labels == tuple(LABELS)
    assert (session.learner.name, session.learner.gamma, session.learner.set_size) == ("mc-dbf", 0.2, 3)
    assert (session.timeout, session.default) == (60.0, False)
    assert (options["host"], options["port"], options["token"]) == ("127.0.0.1", 8800, None)
    session.close()
    run("serve", "--journal", tmp_path / "e.db")  # later starts need no more
    assert served[1][0].learner.id == session.learner.id


def test_serve_refuses_what_is_not_safe_or_not_clear(served, label_file, tmp_path, monkeypatch):
    words = ["serve", "--labels", label_file, "--features", D, "--journal", tmp_path / "e.db"]
    with pytest.raises(InvalidInput, match="SUPERARM_TOKEN"):
        run(*words, "--host", "0.0.0.0")
    with pytest.raises(InvalidInput, match="none, miss or hit"):
        run(*words, "--default-outcome", "maybe")
    with pytest.raises(InvalidInput, match="one label a line"):
        run("serve", "--labels", tmp_path / "missing.txt", "--features", D, "--journal", tmp_path / "e.db")
    (tmp_path / "twice.txt").write_text("a\na\n")
    with pytest.raises(InvalidInput, match="distinct"):
        run("serve", "--labels", tmp_path / "twice.txt", "--features", D, "--journal", tmp_path / "e.db")
    with pytest.raises(JournalForeign, match="--labels of superarm serve must be given for a new journal"):
        run("serve", "--journal", tmp_path / "e.db")
    assert served == []
    (tmp_path / "token").write_text("sixteen-characters\n")
    run(*words, "--host", "0.0.0.0", "--token-file", tmp_path / "token")
    assert served[0][1]["token"] == "sixteen-characters"


def filled(open_session):
    session = open_session()
    for i, x in enumerate(rows(40)):
        session.outcome(Reply(session.decide(Ask(x)).place.id, hit=i % 2 == 0))
    session.commit()
    return session


def test_replay(open_session, tmp_path):
    session = filled(open_session)
    told = json.loads(run("replay", tmp_path / "events.db", "--output", tmp_path / "m.npz", "--json").stdout)
    assert (told["events"], told["different"], told["same"]) == (80, 0, True)
    assert (tmp_path / "m.npz").read_bytes() == session.model_file()
    assert (
        "replayed 80 events from event 0 on" in run("replay", tmp_path / "events.db", "--from-start").stdout
    )
    session.journal.write("UPDATE events SET body = replace(body, '\"hit\":true', '\"hit\":false')")
    session.snapshot()
    session.commit()
    assert run("replay", tmp_path / "events.db").exit_code == 1


def test_export(open_session, tmp_path):
    filled(open_session)
    assert (
        "40 decisions written"
        in run("export", tmp_path / "events.db", "--output", tmp_path / "l.parquet").stdout
    )
    told = json.loads(
        run("export", tmp_path / "events.db", "--output", tmp_path / "l.jsonl", "--json").stdout
    )
    assert told["decisions"] == 40 == len((tmp_path / "l.jsonl").read_text().splitlines())


def test_traffic(live, tmp_path):
    web = live()
    random = np.random.default_rng(0)
    y = random.integers(0, 6, 50)
    np.savez(tmp_path / "data.npz", X=random.normal(size=(50, D)), y=y, classes=LABELS)
    words = [
        "traffic",
        web.url,
        "--data",
        tmp_path / "data.npz",
        "--decisions",
        30,
        "--delay",
        0,
        "--users",
        2,
    ]
    told = json.loads(run(*words, "--json").stdout)
    assert (told["decisions"], told["errors"]) == (30, [])
    shown = run(*words, "--seed", 1)
    assert "30 decisions" in shown.stdout
    assert web.get("/v1/stats")[1]["decisions"] == 60
    web.stop()


@pytest.mark.parametrize(("part", "module"), [("orjson", "fastjson"), ("fastapi", "app")])
def test_a_missing_part_is_told_with_the_command_that_installs_it(monkeypatch, part, module):
    name = f"superarm.service.{module}"
    __import__(name)
    monkeypatch.setitem(sys.modules, part, None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match=r"pip install 'superarm\[serve\]'"):
        importlib.import_module(name)


def test_the_client_needs_no_extra():
    code = "import sys; sys.modules.update(orjson=None, fastapi=None, uvicorn=None, numba=None)\n"
    code += "from superarm.service import Client; Client('http://127.0.0.1:1')"
    subprocess.run([sys.executable, "-c", code], check=True)
