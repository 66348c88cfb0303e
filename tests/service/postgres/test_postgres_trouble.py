"""A database that is away, hangs, is full, refuses or is not the right one; and clocks that are wrong."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from postgres_kit import Database, grants_in_docs, why_not
from service_kit import LABELS, D, rows, soon
from typer.testing import CliRunner

from superarm.errors import InvalidInput
from superarm.journal import clock as clocks
from superarm.journal.errors import JournalUnavailable
from superarm.journal.postgres_address import Address
from superarm.journal.verify import verify
from superarm.service import DecisionRequest, OutcomeRequest, Service

X = rows(20)
ASK = {"features": X[0].tolist(), "id": "a"}


def decide(service, id_, i=0):
    return service.call(service.handler.decide, DecisionRequest(X[i], id_))


def learner_of(service):
    soon(lambda: service.model.learning is not None)
    return service.model.learning


def quick(url, **options):
    return Service.open(url, **({"lease": 0.5, "publish_every": 0.02} | options))


# ---------------------------------------------------------------- away, hanging, full


@pytest.fixture
def fragile():
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    made = Database()
    yield made
    made.close()


def test_a_database_that_is_away_is_503_and_nothing_is_lost(fragile, live):
    url = fragile.fresh()
    web = live(quick(url, labels=LABELS, n_features=D, set_size=2, patience=1.5))
    for i in range(5):
        assert web.post("/v1/decisions", {"features": X[i].tolist(), "id": f"d{i}"})[0] == 200
    fragile.kill()
    status, told = web.post("/v1/decisions", ASK)
    assert (status, web.headers["retry-after"]) == (503, "1")
    assert "cannot be used at the moment" in told["error"]["message"]  # at once
    assert soon(lambda: web.get("/ready")[0] == 503)
    assert web.get("/v1/stats")[0] == 503
    assert web.get("/health")[0] == 200
    fragile.start()
    assert soon(lambda: web.get("/ready")[0] == 200)  # by itself
    assert web.post("/v1/decisions", ASK)[0] == 200
    for i in range(5):
        assert web.post(f"/v1/decisions/d{i}/outcome", {"hit": i % 2 == 0})[0] == 200
    soon(lambda: web.get("/v1/info")[1]["model_version"] == 5)
    found = verify(url)
    assert (found.problems, found.events, found.replayed.same) == ([], 11, True)


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
    service = shared(may_learn=False, patience=0.5)  # so the change waits for somebody who learns
    web = live(service)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(web.post, "/v1/changes", {"what": "freeze"})
        soon(lambda: service.store.changes())
        database.pause()
        try:
            status, told = asked.result(timeout=30.0)
            assert status == 503, told
            assert web.post("/v1/changes", {"what": "freeze"})[0] == 503  # and from now on
        finally:
            database.resume()
    assert soon(lambda: web.get("/ready")[0] == 200)
    shared()  # somebody learns: the change was kept, and is made
    assert soon(lambda: web.get("/v1/info")[1]["frozen"])
    assert web.get("/v1/changes")[1]["changes"][0]["what"] == "freeze"
    assert web.post("/v1/changes", {"what": "unfreeze"})[0] == 200


@pytest.mark.parametrize("each", ["ROW", "STATEMENT"])  # also of no rows, so that asking finds it
def test_a_full_disk_is_507_until_a_write_succeeds(shared, live, each):
    web = live(shared(may_learn=False))
    with web.service.model.address.connect() as connection:
        connection.execute("""CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$""")
        connection.execute(
            f"CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH {each} EXECUTE FUNCTION full_disk()"
        )
        assert web.post("/v1/decisions", ASK)[0] == 507
        status, told = web.get("/ready")
        assert status == 507
        assert "could not extend file" in told["error"]["message"]
        until = time.monotonic() + 2.5
        while time.monotonic() < until:  # it does not come and go, though it is tried
            assert web.get("/ready")[0] == 507
            time.sleep(0.02)
        connection.execute("DROP TRIGGER full_disk ON events")
        assert soon(lambda: web.get("/ready")[0] == 200)  # nobody has asked for anything
        assert connection.execute("SELECT FROM events").fetchall() == []  # what was tried is not kept
    assert web.post("/v1/decisions", ASK)[0] == 200


def test_a_connection_that_was_ended_costs_no_request(shared):
    one = shared(may_learn=False)
    decide(one, "a")
    with one.store.writing() as connection:
        pid = connection.info.backend_pid
    with one.model.address.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        alive = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        soon(lambda: connection.execute(alive, (pid,)).fetchone() == (0,))
    decide(one, "b")
    assert one.down is None
    assert set(one.store.find(["a", "b"])) == {"a", "b"}


def test_a_database_that_is_away_is_told_once(shared, monkeypatch, caplog):
    one = shared()
    learning = learner_of(one)
    connect, refused = Address.connect, []

    def away(self, application="superarm", **options):
        if application == "superarm learns":
            refused.append(application)
            raise JournalUnavailable("it is away")
        return connect(self, application, **options)

    monkeypatch.setattr(Address, "connect", away)
    with connect(one.model.address) as connection:
        pid = learning.lease.connection.info.backend_pid
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    soon(lambda: len(refused) > 3)
    assert [record.message for record in caplog.records].count("learning failed") == 1
    monkeypatch.undo()
    learner_of(one)


# ---------------------------------------------------------------- roles


@pytest.fixture
def limited(database, shared):
    """A role that has what docs/scale.md gives it; and a way to take it away, as the owner."""
    shared(may_learn=False)
    url = shared.url
    name = url.split("/")[3].split("?")[0]
    role = f"limited_{name}"
    with database.connect(name) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute(grants_in_docs(role))
        yield database.address(name, role), role, owner


def test_not_ready_when_the_right_to_write_is_gone_and_nobody_writes(limited, live):
    url, role, owner = limited
    web = live(quick(url))
    assert web.get("/ready")[0] == 200
    owner.execute(f"REVOKE INSERT ON superarm.events FROM {role}")
    told = soon(lambda: [said for status, said in [web.get("/ready")] if status == 503])[0]
    assert "may do this" in told["error"]["message"]
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
    with Address(url, patience=7.0).connect() as connection:
        told = [connection.execute(f"SHOW {name}_timeout").fetchone() for name in ("lock", "statement")]
    assert told == [("0",), ("7s",)]


def test_few_connections_are_those_that_write_hear_and_learn(limited):
    url, role, owner = limited
    one = quick(url)
    try:
        learner_of(one)
        decide(one, "a")
        has = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
        used = owner.execute(has, (role,)).fetchone()[0]
        owner.execute(f"ALTER ROLE {role} CONNECTION LIMIT {used}")
        decide(one, "b")
        one.call(one.handler.outcome, OutcomeRequest("a", hit=True))
        soon(lambda: one.model.serving().totals.stats.learnt == 1)
        assert one.down is None
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
    told = done.output + str(done.exception)
    assert "hold every text" in told
    assert encoding in told
    with database.connect(name) as connection:  # and nothing is left behind
        assert connection.execute("SELECT to_regnamespace('superarm')").fetchone() == (None,)


def test_shadows_that_are_none_are_refused_at_the_start(shared, database):
    shared(may_learn=False)
    with pytest.raises(InvalidInput, match="nosuch"):
        quick(shared.url, shadows=["nosuch"])
    new = database.fresh()
    with pytest.raises(InvalidInput, match="nosuch"):
        quick(new, labels=LABELS, n_features=D, set_size=2, shadows=["nosuch"])
    with Address(new).connect() as connection:
        assert connection.execute("SELECT to_regclass('superarm.format')").fetchone() == (None,)


def test_a_learner_leaves_tables_that_it_does_not_know(shared, live):
    one = shared()
    web = live(one)
    learner_of(one)
    assert web.post("/v1/decisions", ASK)[0] == 200
    with one.model.address.connect() as connection:
        [[version]] = connection.execute("SELECT version FROM format").fetchall()
        connection.execute("UPDATE format SET version = version + 1")
        told = soon(lambda: [said for status, said in [web.get("/ready")] if status == 503])[0]
        assert "install a newer superarm" in told["error"]["message"]
        assert web.post("/v1/decisions", ASK | {"id": "b"})[0] == 503
        connection.execute("UPDATE format SET version = %s", (version,))
    assert soon(lambda: web.get("/ready")[0] == 200)
    learner_of(one)
    assert web.post("/v1/decisions", ASK | {"id": "b"})[0] == 200


# ---------------------------------------------------------------- clocks


def test_a_process_with_a_wrong_clock_changes_nothing(shared, monkeypatch):
    one, real = shared(timeout=20.0, default_outcome=False), time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600.0)
    slow = shared(may_learn=False)
    decide(slow, "slow")
    monkeypatch.undo()
    decide(one, "right")
    learning = learner_of(one)
    before = learning._upkeep_at
    soon(lambda: learning._upkeep_at > before)  # it has looked for what is due
    found = one.store.find(["slow", "right"])
    assert len(found["slow"]) == 1  # not expired
    assert abs(found["slow"][0].time - found["right"][0].time) < 60.0


def test_the_database_tells_the_time(shared, monkeypatch):
    one = shared(may_learn=False)
    with one.model.address.connect() as connection:
        clock = clocks.DatabaseClock(connection)
        before = clock()
        [[told]] = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchall()
        assert before - 0.5 < told < clock() + 0.5
        clock._offset -= 100.0
        monkeypatch.setattr(clocks, "SLOW", 0.0)
        clock.update(connection)  # a query that took too long is not used
        assert clock() < told - 50.0
        monkeypatch.undo()
        clock.update(connection)
        assert abs(clock() - told) < 1.0


def test_since_when_nobody_learns_is_told_also_if_nobody_looks(shared, live):
    one, two = shared(may_learn=False, lease=0.5), shared(lease=0.5)
    learner_of(two)
    web = live(one)
    soon(lambda: one.model.learner_age is not None)
    soon(lambda: "trouble" not in web.get("/ready")[1])
    two.close()
    told = soon(lambda: web.get("/ready")[1].get("trouble"))[0]
    assert told.startswith("no process has learnt for")
