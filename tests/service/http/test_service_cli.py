"""The commands serve, change, replay, export and traffic."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lab_kit import run
from service_kit import LABELS, Clock, D, rows

import superarm as sa
from superarm.errors import InvalidInput, SuperarmError
from superarm.journal.errors import JournalMismatch
from superarm.learners.registry import parse
from superarm.service import DecisionRequest, OutcomeRequest, serve
from superarm.service.client.client import ServiceError


@pytest.fixture
def served(monkeypatch):
    """What would have been served."""
    seen = []

    def instead(open_service, tokens, **options):
        serve.check_exposure(options["listener"], tokens)
        options["listener"].tls_context()
        seen.append((open_service(), {**options, "tokens": tokens}))

    monkeypatch.setattr(serve, "serve", instead)
    monkeypatch.delenv("SUPERARM_TOKEN", raising=False)
    yield seen
    for service, _ in seen:
        service.close()


@pytest.fixture
def label_file(tmp_path):
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n\n")
    return tmp_path / "labels.txt"


@pytest.fixture
def words(label_file, tmp_path):
    """The command that makes a new journal."""
    return ["serve", "--labels", label_file, "--features", D, "--journal", tmp_path / "e.db"]


def test_serve(served, words, tmp_path):
    options = ["--set-size", 3, "--timeout", "60", "--default-outcome", "miss"]
    run(*words, *options, "--learner", "mc-dbf:gamma=0.2")
    service, options = served[0]
    learner = service.projector.learner
    assert learner.labels == tuple(LABELS)
    assert (learner.name, learner.gamma, learner.set_size) == ("mc-dbf", 0.2, 3)
    assert (service.settings.timeout, service.settings.default_outcome) == (60.0, False)
    assert (options["listener"].host, options["listener"].port) == ("127.0.0.1", 8800)
    assert not options["tokens"].required
    service.close()
    run("serve", "--journal", tmp_path / "e.db")  # later starts need no more
    assert served[1][0].follower.projector.learner.id == learner.id


def test_serve_refuses_what_is_not_safe_or_not_clear(served, words, tmp_path):
    with pytest.raises(InvalidInput, match="SUPERARM_TOKEN"):
        run(*words, "--host", "0.0.0.0")
    with pytest.raises(InvalidInput, match="none, miss or hit"):
        run(*words, "--default-outcome", "maybe")
    with pytest.raises(InvalidInput, match="one label a line"):
        run("serve", "--labels", tmp_path / "missing.txt", *words[3:])
    (tmp_path / "twice.txt").write_text("a\na\n")
    with pytest.raises(InvalidInput, match=r"line 2 of .* must be another label than that of line 1"):
        run("serve", "--labels", tmp_path / "twice.txt", *words[3:])
    with pytest.raises(InvalidInput, match="superarm serve needs --labels for a new journal"):
        run("serve", "--journal", tmp_path / "e.db")
    assert served == []
    (tmp_path / "token").write_text("operate sixteen-characters\n")
    run(*words, "--host", "0.0.0.0", "--token-file", tmp_path / "token")
    assert served[0][1]["tokens"].name_of(b"Bearer sixteen-characters") == "operate"


def test_serve_checks_its_options_before_a_journal_is_made(served, words, label_file, tmp_path):
    wrong = {
        ("--timeout", "-5"): "^timeout of superarm serve must be a time",
        ("--timeout", "soon"): "^timeout of superarm serve must be a time",
        ("--retain", "0d"): "^retain of superarm serve must be a time",
        ("--shadow", "perceptron"): "shadow of superarm serve must be a learner that learns from sets",
        ("--tls-cert", label_file): "superarm serve needs --tls-cert and --tls-key together, or neither",
        ("--learner", "perceptron", "--default-outcome", "miss"): "^default_outcome of superarm serve",
        ("--no-create",): "no such journal: ",
    }
    for options, sentence in wrong.items():
        with pytest.raises(SuperarmError, match=sentence):
            run(*words, "--set-size", 2, *options)
        assert not (tmp_path / "e.db").exists()
    assert served == []


def test_an_address_that_cannot_be_bound_makes_no_journal(words, tmp_path, monkeypatch):
    monkeypatch.delenv("SUPERARM_TOKEN", raising=False)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InvalidInput, match="--port of superarm serve must be free"),
    ):
        run(*words, "--port", taken.getsockname()[1])
    with pytest.raises(InvalidInput, match="--unix-socket of superarm serve must be a path to bind"):
        run(*words, "--unix-socket", tmp_path / "missing" / "socket")
    assert not (tmp_path / "e.db").exists()


def test_a_start_that_fails_leaves_no_socket_and_logs_json_only(label_file, tmp_path):
    words = [sys.executable, "-m", "superarm", "serve", "--unix-socket", "socket", "--journal", "e.db"]
    failed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert not (tmp_path / "socket").exists()
    words += ["--labels", str(label_file), "--set-size", "2"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = []
        while not lines or lines[-1]["message"] != "listening":
            lines.append(json.loads(process.stderr.readline()))
        process.terminate()
        rest = process.stderr.read().splitlines()
    assert process.returncode == 0
    assert lines[0]["message"] == "new journal created"
    assert all(json.loads(line) for line in rest)
    assert not (tmp_path / "socket").exists()


def test_a_journal_with_timeouts_in_its_past_warns_without_one(served, open_service, tmp_path, caplog):
    clock = Clock()
    service = open_service("e.db", timeout=60.0, clock=clock)
    service.call(DecisionRequest(rows(1)[0]))
    clock.now += 61.0
    service.call(service.upkeep.write_due_events)
    service.close()
    run("serve", "--journal", tmp_path / "e.db", "--timeout", "1h")
    served[0][0].close()
    assert "decisions do not expire" not in caplog.text
    run("serve", "--journal", tmp_path / "e.db")
    assert "decisions do not expire: this start has no --timeout" in caplog.text


def test_serve_says_what_it_made_and_takes_shadows_and_times(served, words, caplog):
    shadows = ["--shadow", "set-logit:explore=show", "--shadow", "set-logit:explore=0.1"]
    run(*words, "--set-size", 2, *shadows, "--retain", "90d", "--timeout", "2h")
    assert "new journal created" in caplog.text
    service = served[0][0]
    assert (service.settings.retain, service.settings.timeout) == (90 * 86400.0, 7200.0)
    assert [one["learner"] for one in service.projector.reports()] == [
        "set-logit",
        "set-logit:explore=show",
        "set-logit:explore=0.1",
    ]


def test_serve_a_model_of_ones_own(served, tmp_path, caplog):
    own = Path(__file__).parents[2] / "own_learner.py"
    cls = parse(f"{own}:UpAndDown")[0]
    cls(labels=LABELS, n_features=D, set_size=2).save(tmp_path / "own.npz")
    words = ["serve", "--model", tmp_path / "own.npz", "--journal", tmp_path / "e.db"]
    run(*words, "--learner", f"{own}:UpAndDown")
    assert type(served[0][0].follower.projector.learner).__name__ == "UpAndDown"
    served[0][0].close()
    run(*words, "--learner", f"{own}:UpAndDown")  # the same words start it again
    assert "--model is not used" in caplog.text


def test_a_learner_that_is_not_the_models_is_refused(served, tmp_path):
    sa.SetLogit(labels=LABELS, n_features=D, set_size=2).save(tmp_path / "m.npz")
    words = ["serve", "--model", tmp_path / "m.npz", "--journal", tmp_path / "e.db"]
    with pytest.raises(JournalMismatch, match="explore of superarm serve must be left out or 'balanced'"):
        run(*words, "--learner", "set-logit:explore=show")
    with pytest.raises(InvalidInput, match=r"^learner of superarm serve must be the class"):
        run(*words, "--learner", "mc-dbf")
    assert not (tmp_path / "e.db").exists()


def test_change(live, open_service, monkeypatch):
    monkeypatch.delenv("SUPERARM_TOKEN", raising=False)
    web = live(open_service())
    change = ["change", web.url]
    assert "7 labels shown" in run(*change, "add-label", "weather")
    assert "5 labels shown; 2 disabled" in run(*change, "disable-label", "label-0", "weather")
    assert "learning is frozen" in run(*change, "freeze")
    web.post("/v1/decisions", {"features": [1, 2, 3, 4, 5], "id": "a"})
    assert web.post("/v1/decisions/a/outcome", {"hit": True})[1]["outcome"]["learnt"] is False
    assert "frozen" not in run(*change, "unfreeze")
    told = json.loads(run("change", "--json", web.url, "explore", "show"))
    assert told["what"] == "set_explore"
    assert "1 decision erased" in run(*change, "erase", "a")
    assert web.get("/v1/decisions/a")[1]["features"] is None
    assert "rollback: event" in run(*change, "rollback", 0)
    listed = run(*change, "list")
    changes = "add_labels disable_labels freeze unfreeze set_explore erase rollback"
    for word in (*changes.split(), "snapshot after"):
        assert word in listed
    told = json.loads(run("change", "--json", web.url, "list"))
    assert [one["what"] for one in told["changes"]][:2] == ["add_labels", "disable_labels"]
    with pytest.raises(InvalidInput, match="needs ids or --older"):
        run(*change, "erase")
    with pytest.raises(ServiceError, match="labels of change must be new, or disabled"):
        run(*change, "add-label", "label-1")
    web.stop()


def filled(open_service):
    service = open_service()
    for i, x in enumerate(rows(40)):
        shown = service.call(DecisionRequest(x))
        service.call(OutcomeRequest(shown.id, hit=i % 2 == 0))
    return service


def test_replay(open_service, tmp_path):
    filled(open_service)
    told = json.loads(run("replay", tmp_path / "events.db", "--output", tmp_path / "m.npz", "--json"))
    assert (told["events"], told["different"], told["same"]) == (80, 0, True)
    assert list(sa.load(tmp_path / "m.npz").labels) == LABELS
    lines = run("replay", tmp_path / "events.db", "--from-start")
    assert "replayed 80 events after event 0 in" in lines
    assert "decisions compared: 40, different: 0" in lines


def test_export(open_service, tmp_path):
    filled(open_service)
    assert "40 decisions written" in run("export", tmp_path / "events.db", "--output", tmp_path / "l.parquet")
    told = json.loads(run("export", tmp_path / "events.db", "--output", tmp_path / "l.jsonl", "--json"))
    assert told["decisions"] == 40 == len((tmp_path / "l.jsonl").read_text().splitlines())


def test_traffic(live, tmp_path):
    web = live()
    random = np.random.default_rng(0)
    y = random.integers(0, 6, 50)
    np.savez(tmp_path / "data.npz", X=random.normal(size=(50, D)), y=y, classes=LABELS)
    words = ["traffic", web.url, "--data", tmp_path / "data.npz"]
    words += ["--decisions", 30, "--delay", 0, "--users", 2]
    told = json.loads(run(*words, "--json"))
    assert (told["decisions"], told["errors"]) == (30, [])
    shown = run(*words, "--seed", 1)
    assert "30 decisions" in shown
    assert web.get("/v1/stats")[1]["decisions"] == 60
    web.stop()


def test_the_client_needs_no_extra():
    code = "import sys; sys.modules.update(orjson=None, uvicorn=None, prometheus_client=None, polars=None)\n"
    code += "from superarm.service import Client; Client('http://127.0.0.1:1')"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_signals_while_modules_are_imported_end_no_service():
    code = """
import os, signal, sys
from superarm.cli import main

class Finder:
    def find_spec(self, name, *_):
        if name == "superarm.cli.app":
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGUSR1)

sys.meta_path.insert(0, Finder())
sys.argv = ["superarm", "serve", "--no-such-option"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2, done
    assert "no-such-option" in done.stderr
