"""Addresses and secrets, roles, formats, moving in, and the commands, on a real PostgreSQL."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from urllib.parse import unquote

import pytest
from service_kit import LABELS, D, Web, free_port, replayed, rows, soon
from typer.testing import CliRunner

from superarm import extras
from superarm.errors import InvalidInput, MissingExtra
from superarm.service.core.entries import Ask, Reply
from superarm.service.core.faults import JournalDown, JournalForeign
from superarm.service.core.session import Session

X = rows(60)
SECRET = "correct-horse-battery"


def superarm(*arguments):
    from superarm.cli import main
    from superarm.cli.app import app

    assert main
    return CliRunner().invoke(app, [str(one) for one in arguments])


def fill(session, start, count):
    """So many decisions, two of three with an answer, over a shared journal."""
    for i in range(start, start + count):
        calls = [(session.decide, Ask(X[i % 60], id=f"d{i}", context={"i": i}), None)]
        assert session.turn(calls)[0][2] is None
        if i % 3:
            assert session.turn([(session.outcome, Reply(f"d{i}", hit=i % 2 == 0), None)])[0][2] is None


def all_taken(session, decisions):
    soon(lambda: session.refresh(now=True) or session.stats.decisions == decisions)
    soon(lambda: session.stats.pending == -(-decisions // 3) or session.refresh(now=True))


# ---------------------------------------------------------------- addresses and secrets


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://serve:{SECRET}@db/arms",
        f"postgresql://serve@db/arms?password={SECRET}",
        f"postgres://:{SECRET}@/arms",
        f"postgresql://serve@db/arms?sslpassword={SECRET}&sslmode=require",
        f"postgresql://serve:a@{SECRET}@db/arms",
        f"postgresql://serve:a#{SECRET}@db/arms",
        f"postgresql://serve:a?{SECRET}@db/arms",
        f"postgresql://{SECRET}:{SECRET}@db/arms",  # also the name of the user, the host, the database
        f"postgresql://{SECRET}@db/arms?sslmode=require&password={SECRET}",
        f"postgresql://serve:{SECRET}@{SECRET}.example/arms",
        f"postgresql://{SECRET}:{SECRET.replace('-', '%2D')}@db/{SECRET.replace('o', '%6f')}",
    ],
)
def test_passwords_in_an_address_are_refused_and_not_repeated(database, url):
    from superarm.service.core.postgres.connecting import Address

    with pytest.raises(InvalidInput, match="without a password: put it into PGPASSWORD") as caught:
        Address(url)
    assert SECRET not in unquote(str(caught.value))
    for command in (["serve", "--journal", url], ["replay", url], ["verify", url], ["move", "x.db", url]):
        done = superarm(*command)
        assert done.exit_code != 0
        assert SECRET not in done.output + str(done.exception)


@pytest.mark.parametrize(
    "odd",
    [
        f"postgresql+psycopg://serve:{SECRET}@db/arms",
        f"POSTGRESQL://serve:{SECRET}@db/arms",
        f"postgresql:/serve:{SECRET}@db/arms",
        f"host=db dbname=arms password={SECRET}",
        f"mysql://serve:{SECRET}@db/arms",
    ],
)
def test_other_kinds_of_addresses_are_no_files_and_not_repeated(tmp_path, monkeypatch, odd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    for command in (["serve", "--journal", odd, "--labels", "labels.txt"], ["replay", odd], ["verify", odd]):
        done = superarm(*command)
        told = done.output + str(done.exception)
        assert done.exit_code != 0
        assert "must be a file, or an address such as postgresql://user@host" in told
        assert SECRET not in told
    assert [path.name for path in tmp_path.iterdir()] == ["labels.txt"]


def test_what_is_no_address_is_refused(database):
    from superarm.service.core.postgres.connecting import Address, redacted

    with pytest.raises(InvalidInput, match="an address such as postgresql://user@host"):
        Address(f"postgresql://a:{SECRET}@b:notaport%%/x?y")
    assert redacted("anything") == "postgresql://…"
    assert (
        str(Address("postgresql://serve@db:5433/arms?sslmode=require")) == "postgresql://serve@db:5433/arms"
    )


def test_a_password_from_the_environment_that_is_also_the_name_of_the_user_is_not_told(monkeypatch):
    from superarm.service.core.postgres.connecting import Address

    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert str(Address(f"postgresql://{SECRET}@db/arms")) == "postgresql://…"
    assert str(Address("postgresql://serve@db/arms")) == "postgresql://serve@db/arms"


def test_a_password_from_the_environment_or_a_file(database, tmp_path, monkeypatch, caplog):
    """The server is asked for a password, by way of a rule of its own for one role."""
    from superarm.service.core.postgres.connecting import Address

    hba = database.folder / "data" / "pg_hba.conf"
    before = hba.read_text()
    try:
        with database.connect() as connection:
            connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
            hba.write_text("local all guarded scram-sha-256\n" + before)
            connection.execute("SELECT pg_reload_conf()")
        address = Address(database.address("postgres", "guarded"))
        soon(lambda: _refused(address))
        monkeypatch.setenv("PGPASSWORD", "wrong-" + SECRET)
        with caplog.at_level(logging.DEBUG), pytest.raises(JournalDown) as caught:
            address.connect()
        assert SECRET not in str(caught.value) + caplog.text
        monkeypatch.setenv("PGPASSWORD", SECRET)
        address.connect().close()
        monkeypatch.delenv("PGPASSWORD")
        file = tmp_path / "secret"
        file.write_text(f"*:*:*:guarded:{SECRET}\n")
        file.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(file))
        address.connect().close()
    finally:
        hba.write_text(before)
        with database.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")


def _refused(address):
    try:
        address.connect().close()
    except JournalDown:
        return True
    return False


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("superarm.service.core.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(extras.EXTRAS, "postgres", ("PostgreSQL", ("psycopg_that_nobody_has",)))
    done = superarm("replay", "postgresql://serve@db/arms")
    assert isinstance(done.exception, MissingExtra)
    assert 'pip install "superarm[postgres]"' in str(done.exception)


# ---------------------------------------------------------------- roles and formats


def test_two_roles_as_in_the_docs(database, shared):
    """The SQL of docs/scale.md: `serve` can do all that a process must, and nothing that it need not."""
    from pathlib import Path

    from superarm.service.core.postgres.connecting import Address, psycopg
    from superarm.service.core.postgres.schema import GRANTS
    from superarm.service.core.postgres.session import SharedSession

    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
    roles, grants = (part.partition("```")[0] for part in page.split("```sql\n")[1:3])
    assert grants.strip() == GRANTS.format(role="serve").strip()
    url = database.fresh()
    name = url.split("/")[3].split("?")[0]
    with database.connect(name) as connection:
        connection.execute(roles.replace("arms", name))
    operate, serve = database.address(name, "operate"), database.address(name, "serve")
    with pytest.raises(JournalForeign, match="role of superarm must be one that may do this"):
        SharedSession.open(serve, labels=LABELS, n_features=D, set_size=2)
    assert "is of format 1 now" in superarm("migrate", operate).output
    assert "is of format 1 already" in superarm("migrate", operate).output
    with database.connect(name, "operate") as connection:
        connection.execute(grants)
    sessions = [
        SharedSession.open(serve, labels=LABELS, n_features=D, set_size=2, lease=2.0) for _ in range(2)
    ]
    try:
        fill(sessions[0], 0, 9)
        all_taken(sessions[1], 9)
        sessions[1].add_labels(["more"])
        assert sessions[0].erase(ids=["d1"]) == 1
        learner = soon(lambda: [one for one in sessions if one.learning is not None])[0]
        pid = learner.learning.connection.info.backend_pid
        with database.connect(name, "serve") as connection:
            assert connection.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (True,)
            for forbidden in (
                "DELETE FROM superarm.events",
                "UPDATE superarm.events SET body = ''",
                "UPDATE superarm.batches SET term = 0",
                "DELETE FROM superarm.batches",
                "DROP TABLE superarm.events",
                "TRUNCATE superarm.events",
                "UPDATE superarm.format SET version = 9",
                "CREATE TABLE superarm.mine (x int)",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(forbidden)
    finally:
        for session in sessions:
            session.close()
    from superarm.service.core.postgres.checking import verify

    assert verify(Address(operate)).problems == ()


def test_formats_side_by_side(database, shared, monkeypatch):
    from superarm.service.core.postgres import schema
    from superarm.service.core.postgres.session import SharedSession

    one = shared()
    fill(one, 0, 3)
    monkeypatch.setattr(schema, "FORMAT", 2)  # as a newer superarm would have it
    with pytest.raises(JournalForeign, match=r"of format 2 \(superarm migrate"):
        SharedSession.open(one.url)
    steps = {1: (lambda connection: connection.execute("ALTER TABLE superarm.meta ADD note text"), 1)}
    monkeypatch.setattr(schema, "STEPS", steps)
    broken = {1: (lambda connection: connection.execute("ALTER TABLE superarm.nothing ADD x int"), 1)}
    monkeypatch.setattr(schema, "STEPS", broken)
    with pytest.raises(JournalForeign):
        schema.migrate(one.address)
    with database.connect(one.url.split("/")[3].split("?")[0]) as connection:
        assert connection.execute("SELECT version FROM superarm.format").fetchone() == (1,)  # all or nothing
    monkeypatch.setattr(schema, "STEPS", steps)
    assert schema.migrate(one.address) == (1, 2)
    monkeypatch.setattr(schema, "FORMAT", 1)  # the old process goes on beside it
    time.sleep(1.2)
    one.recover()  # (it has the same module, and took itself for the newer one)
    fill(one, 3, 3)
    all_taken(one, 6)
    assert one.down is None
    with database.connect(one.url.split("/")[3].split("?")[0]) as connection:
        connection.execute(
            "UPDATE superarm.format SET version = 3, oldest = 2"
        )  # ... and beside this one not
    soon(lambda: one.down is not None)
    with pytest.raises(JournalDown, match="install a newer superarm"):
        one.turn([])
    with pytest.raises(JournalForeign, match="install a newer superarm"):
        SharedSession.open(one.url)


# ---------------------------------------------------------------- a database that is away


def test_a_database_that_hangs_is_503_while_it_hangs(live, shared, database):
    session = shared(patience=0.5)
    web = live(session)
    assert web.post("/v1/decisions", {"features": X[0].tolist(), "id": "a"})[0] == 200
    name = session.url.split("/")[3].split("?")[0]
    with database.connect(name) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE superarm.events IN ACCESS EXCLUSIVE MODE")  # nobody can write, or read
        status, told = web.post("/v1/decisions", {"features": X[0].tolist(), "id": "b"})
        assert (status, web.headers["retry-after"]) == (503, "1")
        assert web.get("/health")[0] == 200
        assert web.post("/v1/decisions", {"features": X[0].tolist(), "id": "c"})[0] == 503
        assert "/arms" not in told["error"]["message"]
        assert web.get("/ready")[0] == 503
        blocker.execute("ROLLBACK")
    soon(lambda: web.post("/v1/decisions", {"features": X[0].tolist(), "id": "b"})[0] == 200)
    assert soon(lambda: web.get("/ready")[0] == 200)
    web.stop()
    assert replayed(shared()).same


# ---------------------------------------------------------------- commands


def test_moving_in(tmp_path, database, shared):
    """A past of one process: with changes, timeouts, erased features, archives; and life goes on after it."""
    from superarm.service.core.archive import Compaction
    from superarm.service.core.postgres.session import SharedSession

    file = tmp_path / "events.db"
    session = Session.open(
        file, labels=LABELS, n_features=D, set_size=2, timeout=1e-9, default=False, snapshot_every=40
    )
    for i in range(60):
        shown = session.decide(Ask(X[i], id=f"old{i}"))
        if i % 2:
            session.outcome(Reply(shown.place.id, hit=i % 3 == 0))
        if i == 20:
            session.add_labels(["chess"])
        if i == 30:
            session.snapshot()
    session.commit()
    session.expire()
    session.decide(Ask(X[0], id="waits"))
    session.outcome(Reply("old0", hit=True))  # late
    session.commit()
    work = Compaction(session.journal, 1)
    work.write()
    while work.step():
        session.commit()
    session.commit()
    model, seq = session.model_file(), session.journal.seq
    url = database.fresh()
    done = superarm("move", file, url)
    assert done.exit_code != 0
    assert "held" in str(done.exception)  # the service is still running
    session.journal.close()
    done = superarm("move", file, url, "--json")
    assert done.exit_code == 0, done.output + str(done.exception)
    assert json.loads(done.output)["events"] == seq
    again = superarm("move", file, url)
    assert "without a superarm journal" in str(again.exception)
    here = SharedSession.open(url, lease=2.0)
    try:
        loaded, moved = here.model_file(), here.find("old0")
        assert loaded == model
        assert moved.full()["state"] == "answered late"
        assert here.find("old1").outcome["learnt"] is True
        assert [change["what"] for change in here.changes()] == ["add_labels"]
        assert here.turn([(here.outcome, Reply("waits", hit=True), None)])[0][2] is None
        fill(here, 0, 9)
        soon(lambda: here.refresh(now=True) or here.stats.decisions == 70)
        assert soon(lambda: here.find("waits").outcome["learnt"])
        done = replayed(here)
        assert done.same
        assert done.events > seq + 9
    finally:
        here.close()
    Session.open(file).close()  # the file is as it was


def test_moving_in_with_erased_features(tmp_path, database):
    from superarm.service.core.postgres.checking import verify
    from superarm.service.core.postgres.connecting import Address

    file = tmp_path / "events.db"
    session = Session.open(file, labels=LABELS, n_features=D, set_size=2)
    for i in range(30):
        session.outcome(Reply(session.decide(Ask(X[i], id=f"d{i}")).place.id, hit=True))
    session.commit()
    assert session.erase(ids=["d3"]) == 1
    session.outcome(Reply(session.decide(Ask(X[0], id="after")).place.id, hit=True))
    session.commit()
    session.close()
    url = database.fresh()
    assert superarm("move", file, url).exit_code == 0
    found = verify(Address(url))
    assert found.problems == ()
    assert found.erased == 1
    assert found.replayed.jumps


def test_replay_export_verify_and_backup(tmp_path, shared):
    import polars as pl

    one = shared()
    for start in (0, 15):  # at least two batches
        fill(one, start, 15)
        all_taken(one, start + 15)
    url = one.url
    told = json.loads(superarm("replay", url, "--json", "--output", tmp_path / "model.npz").output)
    assert (told["events"], told["same"], told["snapshots_missed"]) == (50, True, [])
    assert len(told["snapshots_met"]) > 1
    assert (tmp_path / "model.npz").read_bytes() == one.model_file()
    told = json.loads(superarm("verify", url, "--json").output)
    assert (told["sound"], told["replayed"], told["events"]) == (True, 50, 50)
    assert "50 events" in superarm("verify", url, "--no-replay").output
    assert "left out" in str(superarm("verify", url, "--accept-loss").exception)
    assert superarm("export", url, "--output", tmp_path / "log.parquet").exit_code == 0
    log = pl.read_parquet(tmp_path / "log.parquet")
    assert log["hit"].null_count() == 10
    assert sorted(log["id"]) == sorted(f"d{i}" for i in range(30))
    assert json.loads(log.filter(pl.col("id") == "d7")["context"][0]) == {"i": 7}
    done = superarm("backup", url, tmp_path / "copy.db")
    assert "backed up by its own pg_dump" in str(done.exception)
    assert "use the route" in str(superarm("erase", url, "--id", "d1").exception)
    with one.address.connect() as connection:
        connection.execute("DROP SCHEMA superarm CASCADE")
    for command in (["replay", url], ["verify", url], ["export", url, "--output", tmp_path / "x.jsonl"]):
        assert "a superarm journal" in str(superarm(*command).exception)


def test_the_command_itself(tmp_path, database):
    """superarm serve, twice, as anybody would start it."""
    url = database.fresh()
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    new = ["--labels", str(tmp_path / "labels.txt"), "--features", str(D), "--set-size", "2"]
    processes, webs = [], []
    try:
        for _ in range(2):  # at the same moment: one of them makes the journal
            port = free_port()
            command = [sys.executable, "-m", "superarm", "serve", "--journal", url, "--port", str(port)]
            log = (tmp_path / f"log{len(webs)}").open("wb")
            processes.append(subprocess.Popen([*command, "--lease", "2", *new], stderr=log))
            log.close()
            webs.append(Web(port))
        for web in webs:
            web.wait(60)
        shown = webs[0].post("/v1/decisions", {"features": X[0].tolist(), "id": "a"})[1]
        assert webs[1].post("/v1/decisions", {"features": X[0].tolist(), "id": "a"})[1] == shown
        assert webs[1].post("/v1/decisions/a/outcome", {"hit": True})[0] == 200
        assert soon(lambda: webs[0].get("/v1/stats")[1]["learnt"] == 1)
        stats = soon(lambda: [s for s in [webs[0].get("/v1/stats")[1]] if len(s["processes"]) == 2])[0]
        assert sorted(one["learns"] for one in stats["processes"]) == [False, True]
        assert all(one["behind"] < 5.0 for one in stats["processes"])
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            assert process.wait(20) == 0
    told = "".join((tmp_path / f"log{i}").read_text() for i in range(2))
    assert told.count("superarm: there was no journal: made a new one, postgresql://") == 1
    left = [thread.name for thread in threading.enumerate() if "superarm" in thread.name]
    assert left == []
