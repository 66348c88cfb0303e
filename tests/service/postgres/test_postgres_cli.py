"""Addresses, secrets and roles on a real PostgreSQL. (tests/journal/test_postgres_store.py has the rest)"""

from __future__ import annotations

import logging
import sys
from urllib.parse import unquote

import pytest
from postgres_kit import database_name
from service_kit import LABELS, D, rows, soon
from typer.testing import CliRunner

from superarm import _extras as extras
from superarm.errors import InvalidInput, MissingExtra
from superarm.journal.changes import AddLabels, Erase
from superarm.journal.errors import JournalMismatch, JournalUnavailable
from superarm.service import DecisionRequest, OutcomeRequest, Service

X = rows(60)
SECRET = "correct-horse-battery"


def superarm(*arguments):
    from superarm.cli import main
    from superarm.cli.app import app

    assert main
    return CliRunner().invoke(app, [str(one) for one in arguments])


def fill(service, start, count):
    """So many decisions, two of three with an outcome."""
    for i in range(start, start + count):
        service.call(DecisionRequest(X[i % 60], id=f"d{i}", context={"i": i}))
        if i % 3:
            service.call(OutcomeRequest(f"d{i}", hit=i % 2 == 0))


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
@pytest.mark.slow
def test_passwords_in_an_address_are_refused_and_not_repeated(database, url):
    from superarm.journal.postgres_connection import Address

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
        output = done.output + str(done.exception)
        assert done.exit_code != 0
        assert "must be a file, or an address such as postgresql://user@host" in output
        assert SECRET not in output
    assert [path.name for path in tmp_path.iterdir()] == ["labels.txt"]


def test_what_is_no_address_is_refused(database):
    from superarm.journal.backends import redacted
    from superarm.journal.postgres_connection import Address

    with pytest.raises(InvalidInput, match="an address such as postgresql://user@host"):
        Address(f"postgresql://a:{SECRET}@b:notaport%%/x?y")
    assert redacted("anything") == "postgresql://…"
    assert (
        str(Address("postgresql://serve@db:5433/arms?sslmode=require")) == "postgresql://serve@db:5433/arms"
    )


def test_a_password_from_the_environment_that_is_also_the_name_of_the_user_is_not_told(monkeypatch):
    from superarm.journal.postgres_connection import Address

    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert str(Address(f"postgresql://{SECRET}@db/arms")) == "postgresql://…"
    assert str(Address("postgresql://serve@db/arms")) == "postgresql://serve@db/arms"


def test_a_password_from_the_environment_or_a_file(database, tmp_path, monkeypatch, caplog):
    """The server is asked for a password, by way of a rule of its own for one role."""
    from superarm.journal.postgres_connection import Address

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
        with caplog.at_level(logging.DEBUG), pytest.raises(JournalUnavailable) as caught:
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
    except JournalUnavailable:
        return True
    return False


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("superarm.journal.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(extras.EXTRAS, "postgres", ("PostgreSQL", ("psycopg_that_nobody_has",)))
    done = superarm("replay", "postgresql://serve@db/arms")
    assert isinstance(done.exception, MissingExtra)
    assert 'pip install "superarm[postgres]"' in str(done.exception)


# ---------------------------------------------------------------- roles and formats


def test_two_roles_as_in_the_docs(database):
    """The SQL of docs/scale.md: `serve` can do all that a process must, and nothing that it need not."""
    from pathlib import Path

    from superarm.journal.postgres_connection import psycopg
    from superarm.journal.verify import verify

    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
    roles, grants = (part.partition("```")[0] for part in page.split("```sql\n")[1:3])
    url = database.fresh()
    name = database_name(url)
    with database.connect(name) as connection:
        connection.execute(roles.replace("arms", name))
    operate, serve = database.address(name, "operate"), database.address(name, "serve")
    with pytest.raises(JournalMismatch, match="role of superarm must be one that may do this"):
        Service.open(serve, labels=LABELS, n_features=D, set_size=2)
    assert "is of format 4 now" in superarm("migrate", operate).output
    assert "is of format 4 already" in superarm("migrate", operate).output
    with database.connect(name, "operate") as connection:
        connection.execute(grants)
    sessions = [Service.open(serve, labels=LABELS, n_features=D, set_size=2) for _ in range(2)]
    try:
        fill(sessions[0], 0, 9)
        sessions[1].call(AddLabels(labels=["more"]))
        erasure = sessions[0].call(Erase(ids=["d1"]))
        assert sessions[0].follower.n_erased(erasure) == 1
        assert len(sessions[1].store.processes()) == 2
        for session in sessions:
            session.call(session.upkeep.write_due_events)
            session.call(lambda session=session: session.follower.snapshot())
        with database.connect(name, "serve") as connection:
            for forbidden in (
                "DELETE FROM superarm.events",
                "UPDATE superarm.events SET body = ''",
                "DELETE FROM superarm.head",
                "UPDATE superarm.meta SET value = '1'",
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
    assert verify(operate).problems == []
