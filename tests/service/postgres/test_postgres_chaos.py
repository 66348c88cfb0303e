"""Accidents under load, and the history of every request afterwards. (200 of them: benchmarks/soak.py)"""

from __future__ import annotations

import pytest
from postgres_chaos import KINDS, Cluster
from postgres_history import Attempt, check
from postgres_kit import running_database

from superarm.journal.errors import JournalDamaged


@pytest.fixture(scope="module")
def fragile():
    """A database that may be killed: what it says is durable must be."""
    yield from running_database()


@pytest.mark.slow
def test_three_rounds_of_accidents(fork_server, fragile):
    cluster = Cluster(fork_server, fragile)
    try:
        for seed in range(3):
            counts = cluster.rounds(list(KINDS), seed=seed, calm=0.2)
            assert counts["acknowledged"] > 50, counts
        assert counts["snapshots met"] > 0
    finally:
        cluster.close()


def test_the_checker_finds_what_is_wrong(fork_server, fragile):
    """A checker that cannot fail checks nothing: each lie about the history must be found."""
    cluster = Cluster(fork_server, fragile)
    try:
        counts = cluster.rounds([], seed=9, calm=0.3)
        assert counts["acknowledged"] > 10
        with cluster.address.connect() as connection:
            text = "SELECT id, body FROM events WHERE kind = 1 ORDER BY seq"
            rows = connection.execute(text).fetchall()
        from orjson import loads

        def shown_of(row):
            body = loads(row[1])
            return {"labels": body["labels"], "propensity": 0.5, "model_version": body["n_learnt"]}

        id_, shown, last = rows[0][0], shown_of(rows[0]), rows[-1]

        def attempt(what, id_, body, sent=0.0):
            return Attempt(0, what, id_, 1, sent, sent + 1.0, 200, body)

        other = {**shown, "labels": shown["labels"][::-1]}
        outcome = {"outcome": {"hit": True}}
        for wrong, words in (
            ([attempt("decide", "nobody", shown)], "acknowledged and is lost"),
            ([attempt("decide", id_, shown), attempt("look", id_, other)], "has changed"),
            ([attempt("answer", "nobody", outcome)], "acknowledged and is lost"),
            (
                [attempt("decide", last[0], shown_of(last), -2.0), attempt("decide", id_, shown)],
                "has the model of event 0, after event",
            ),
        ):
            with pytest.raises(AssertionError, match=words):
                check(wrong, cluster.url)
        with pytest.raises(AssertionError, match="another model"):
            check([], cluster.url, b"a model")
        with cluster.address.connect() as connection:
            connection.execute("UPDATE events SET time = time + 1 WHERE seq = 3")
        with pytest.raises((AssertionError, JournalDamaged)):
            check([], cluster.url)
    finally:
        cluster.close()
