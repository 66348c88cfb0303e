"""A new shared journal is given its tables and its learner, once; all later starts must agree with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orjson import dumps

from superarm.service.core import founding
from superarm.service.core.faults import JournalForeign
from superarm.service.core.journal import Snapshot
from superarm.service.core.model import load_class
from superarm.service.core.postgres.connecting import Address, failures
from superarm.service.core.postgres.schema import check, migrate
from superarm.service.core.postgres.tables import meta_of, write_snapshot
from superarm.service.core.shadows import make_shadows
from superarm.service.core.snapshots import learner_from, made_by

__all__ = ["found"]


def found(
    address: Address,
    asked: dict[str, Any],
    model: str | Path | None,
    *,
    create: bool,
    shadows: Sequence[str] = (),
) -> bool:
    """Have a journal there that was made for this; whether it is new."""
    with address.connect("superarm begins") as connection, failures(address):
        tables = check(connection, address)
        meta = meta_of(connection, address) if tables else {}
    new = not meta
    if new and not create:
        raise JournalForeign.must("journal", "superarm serve", "there already", str(address))
    if new:
        given, parts, totals = founding.first(asked, model)
        make_shadows(shadows, learner_from(parts["model"]))  # a start that will fail leaves nothing behind
        if not tables:
            migrate(address)
        with address.connect("superarm begins") as connection, failures(address), connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('superarm journal'))")
            if meta := meta_of(connection, address):
                new = False  # another process was faster
            else:
                meta = given
                for key, value in meta.items():
                    connection.execute("INSERT INTO meta VALUES (%s, %s)", (key, dumps(value).decode()))
                write_snapshot(connection, Snapshot(0, meta["made"], parts, totals, made_by()))
    founding.check(str(address), meta, asked)
    load_class(meta, asked["learner"])
    return new
