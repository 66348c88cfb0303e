"""A database that is away, hangs, is full, refuses or is not the right one; and clocks that are wrong."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from postgres_kit import database_name, grants_in_docs, running_database
from service_kit import LABELS, D, rows, soon
from typer.testing import CliRunner

from superarm.errors import InvalidInput
from superarm.journal import clock as clocks
from superarm.journal.postgres_connection import Address
from superarm.journal.verify import verify
from superarm.service import DecisionRequest, OutcomeRequest, Service

X = rows(20)
ASK = {"features": X[0].tolist(), "id": "a"}


def decide(service, id_, i=0):
    return service.call(DecisionRequest(X[i], id_))


# ---------------------------------------------------------------- away, hanging, full


@pytest.fixture
def fragile():
    yield from running_database()


def test_a_database_that_is_away_is_503_and_nothing_is_lost(fragile, live):
    url = fragile.fresh()
    web = live(Service.open(url, labels=LABELS, n_features=D, set_size=2, patience=1.5))
    for i in range(5):
        assert web.post("/v1/decisions", {"features": X[i].tolist(), "id": f"d{i}"})[0] == 200
    fragile.kill()
    status, body = web.post("/v1/decisions", ASK)
    assert (status, web.headers["retry-after"]) == (503, "1")
    assert "cannot be used at the moment" in body["error"]["message"]  # at once
    assert soon(lambda: web.get("/ready")[0] == 503)
    assert web.get("/v1/stats")[0] == 503
    assert web.get("/health")[0] == 200
    fragile.start()
    assert soon(lambda: web.get("/ready")[0] == 200)  # by itself
    assert web.post("/v1/decisions", ASK)[0] == 200
    for i in range(5):
        assert web.post(f"/v1/decisions/d{i}/outcome", {"hit": i % 2 == 0})[0] == 200
    soon(lambda: web.get("/v1/info")[1]["model_version"] == 5)
    result = verify(url)
    assert (result.problems, result.events, result.replayed.same) == ([], 11, True)


@pytest.mark.slow
def test_a_database_that_stands_still_keeps_nobody_waiting(shared, live, database):
    web = live(shared(patience=0.5))
    assert web.get("/v1/stats")[0] == 200
    assert web.get("/ready")[0] == 200
    database.pause()
    try:
        assert web.get("/v1/stats")[0] == 503
        assert web.headers["retry-after"] == "1"
        soon(lambda: web.get("/ready")[0] == 503)  # nobody has tried to write
        for path in ["/v1/stats", "/v1/pending", "/v1/model"] * 3:
            assert web.get(path)[0] == 503
        assert web.post("/v1/decisions", ASK)[0] == 503
        assert web.get("/health")[0] == 200
    finally:
        database.resume()
    assert soon(lambda: web.get("/ready")[0] == 200)
    assert soon(lambda: web.get("/v1/stats")[0] == 200)
    assert web.post("/v1/decisions", ASK)[0] == 200


def test_a_change_that_is_under_way_when_the_database_hangs_keeps_nobody_waiting(shared, live, database):
    web = live(shared(patience=0.5))
    with ThreadPoolExecutor(1) as pool:
        database.pause()
        try:
            asked = pool.submit(web.post, "/v1/changes", {"what": "freeze"})
            status, body = asked.result(timeout=30.0)
            assert status == 503, body
            assert web.post("/v1/changes", {"what": "freeze"})[0] == 503  # and from now on
        finally:
            database.resume()
    assert soon(lambda: web.get("/ready")[0] == 200)
    assert web.post("/v1/changes", {"what": "freeze"})[0] == 200
    assert soon(lambda: web.get("/v1/info")[1]["frozen"])
    assert web.post("/v1/changes", {"what": "unfreeze"})[0] == 200


@pytest.mark.parametrize("each", ["ROW", "STATEMENT"])  # also of no rows, so that asking finds it
def test_a_full_disk_is_507_until_a_write_succeeds(shared, live, each):
    web = live(shared())
    with web.service.store.address.connect() as connection:
        connection.execute("""CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$""")
        connection.execute(
            f"CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH {each} EXECUTE FUNCTION full_disk()"
        )
        assert web.post("/v1/decisions", ASK)[0] == 507
        status, body = web.get("/ready")
        assert status == 507
        assert "could not extend file" in body["error"]["message"]
        until = time.monotonic() + 2.5
        while time.monotonic() < until:  # it does not come and go, though it is tried
            assert web.get("/ready")[0] == 507
            time.sleep(0.02)
        connection.execute("DROP TRIGGER full_disk ON events")
        assert soon(lambda: web.get("/ready")[0] == 200)  # nobody has asked for anything
        assert connection.execute("SELECT FROM events").fetchall() == []  # what was tried is not kept
    assert web.post("/v1/decisions", ASK)[0] == 200


def test_a_connection_that_was_ended_costs_no_request(shared):
    one = shared()
    decide(one, "a")
    with one.store.writing() as connection:
        pid = connection.info.backend_pid
    with one.store.address.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        alive = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        soon(lambda: connection.execute(alive, (pid,)).fetchone() == (0,))
    decide(one, "b")
    assert one.outage is None
    assert set(one.store.events_by_id(["a", "b"])) == {"a", "b"}


# ---------------------------------------------------------------- roles


@pytest.fixture
def limited(database, shared):
    """A role that has what docs/scale.md gives it; and a way to take it away, as the owner."""
    shared()
    url = shared.url
    name = database_name(url)
    role = f"limited_{name}"
    with database.connect(name) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute(grants_in_docs(role))
        yield database.address(name, role), role, owner


def test_not_ready_when_the_right_to_write_is_gone_and_nobody_writes(limited, live):
    url, role, owner = limited
    web = live(Service.open(url))
    assert web.get("/ready")[0] == 200
    owner.execute(f"REVOKE INSERT ON superarm.events FROM {role}")
    body = soon(lambda: [body for status, body in [web.get("/ready")] if status == 503])[0]
    assert "may do this" in body["error"]["message"]
    until = time.monotonic() + 2.5
    while time.monotonic() < until:  # it does not come and go
        assert web.get("/ready")[0] == 503
        time.sleep(0.02)
    assert web.get("/v1/stats")[0] == 200  # whoever only looks can
    owner.execute(f"GRANT INSERT ON superarm.events TO {role}")
    assert soon(lambda: web.get("/ready")[0] == 200)
    assert web.post("/v1/decisions", ASK)[0] == 200


def test_settings_of_a_role_that_would_end_statements_are_not_ours(limited):
    url, role, owner = limited
    owner.execute(f"ALTER ROLE {role} SET lock_timeout = '1ms'")
    owner.execute(f"ALTER ROLE {role} SET statement_timeout = '1ms'")
    with Address(url, statement_timeout=7.0).connect() as connection:
        timeouts = [connection.execute(f"SHOW {name}_timeout").fetchone() for name in ("lock", "statement")]
    assert timeouts == [("0",), ("7s",)]


def test_one_connection_is_enough_to_write_and_learn(limited):
    url, role, owner = limited
    one = Service.open(url)
    try:
        decide(one, "a")
        has = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
        used = owner.execute(has, (role,)).fetchone()[0]
        owner.execute(f"ALTER ROLE {role} CONNECTION LIMIT {used}")
        decide(one, "b")
        one.call(OutcomeRequest("a", hit=True))
        assert used == 1
        assert one.follower.projector.totals.stats.learnt == 1
        assert one.outage is None
    finally:
        owner.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
        one.close()


# ---------------------------------------------------------------- the wrong database


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_serve_refuses_a_database_that_cannot_hold_every_text(database, encoding, tmp_path):
    from superarm.cli.app import app

    name = f"served_{encoding.lower()}"
    with database.connect() as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    labels = tmp_path / "labels.txt"
    labels.write_text("a\nb\nc\n")
    command = ["serve", "--journal", database.address(name), "--labels", str(labels), "--set-size", "1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    output = done.output + str(done.exception)
    assert "hold every text" in output
    assert encoding in output
    with database.connect(name) as connection:  # and nothing is left behind
        assert connection.execute("SELECT to_regnamespace('superarm')").fetchone() == (None,)


def test_shadows_that_are_none_are_refused_at_the_start(shared, database):
    shared()
    with pytest.raises(InvalidInput, match="nosuch"):
        Service.open(shared.url, shadows=["nosuch"])
    new = database.fresh()
    with pytest.raises(InvalidInput, match="nosuch"):
        Service.open(new, labels=LABELS, n_features=D, set_size=2, shadows=["nosuch"])
    with Address(new).connect() as connection:
        assert connection.execute("SELECT to_regclass('superarm.format')").fetchone() == (None,)


def test_a_process_refuses_tables_that_it_does_not_know(shared, live):
    one = shared()
    web = live(one)
    assert web.post("/v1/decisions", ASK)[0] == 200
    with one.store.address.connect() as connection:
        [[version]] = connection.execute("SELECT version FROM format").fetchall()
        connection.execute("UPDATE format SET version = version + 1")
        body = soon(lambda: [body for status, body in [web.get("/ready")] if status == 503])[0]
        assert "install a newer superarm" in body["error"]["message"]
        assert web.post("/v1/decisions", ASK | {"id": "b"})[0] == 503
        connection.execute("UPDATE format SET version = %s", (version,))
    assert soon(lambda: web.get("/ready")[0] == 200)
    assert web.post("/v1/decisions", ASK | {"id": "b"})[0] == 200


# ---------------------------------------------------------------- clocks


def test_a_process_with_a_wrong_clock_changes_nothing(shared, monkeypatch):
    one, real = shared(timeout=20.0, default_outcome=False), time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600.0)
    slow = shared()
    decide(slow, "slow")
    monkeypatch.undo()
    decide(one, "right")
    soon(one.store.begin_upkeep)
    assert one.upkeep.timeouts() == []
    one.call(one.upkeep.write_due_events)
    events = one.store.events_by_id(["slow", "right"])
    assert len(events["slow"]) == 1  # not expired
    assert abs(events["slow"][0].time - events["right"][0].time) < 60.0


def test_the_database_tells_the_time(shared, monkeypatch):
    one = shared()
    with one.store.address.connect() as connection:
        clock = one.store.clock()
        before = clock()
        [[database_time]] = connection.execute(
            "SELECT extract(epoch FROM clock_timestamp())::float8"
        ).fetchall()
        assert before - 0.5 < database_time < clock() + 0.5
        clock._offset -= 100.0
        monkeypatch.setattr(clocks, "MAX_QUERY_SECONDS", 0.0)
        clock.update()  # a query that took too long is not used
        assert clock() < database_time - 50.0
        monkeypatch.undo()
        clock.update()
        assert abs(clock() - database_time) < 1.0
