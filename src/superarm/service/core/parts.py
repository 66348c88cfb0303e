"""The parts of a snapshot in the database: in pieces, each part with its length and digest."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from hashlib import blake2b
from struct import pack
from typing import Any

from orjson import dumps

from superarm.service.core.events import DIGEST_BYTES, digest

__all__ = ["describe", "pieces", "read_parts", "snapshot_digest", "write_snapshot"]

PIECE = 1 << 20  # bytes


def describe(parts: dict[str, bytes]) -> dict[str, Any]:
    """Length and digest of each part."""
    return {
        name: {"bytes": len(data), "digest": blake2b(data, digest_size=DIGEST_BYTES).hexdigest()}
        for name, data in parts.items()
    }


def pieces(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    for start in range(0, len(data), PIECE):
        yield bytes(view[start : start + PIECE])


def snapshot_digest(chain: bytes, seq: int, at: float, totals: str, made_by: str, parts: str) -> bytes:
    """Of everything that a snapshot says, and of the event it stands after."""
    return digest(chain + pack("<qd", seq, at) + "\0".join((totals, made_by, parts)).encode())


def write_snapshot(
    write: Callable[..., object],
    chain: bytes,
    seq: int,
    at: float,
    totals: dict[str, Any],
    made_by: dict[str, str],
    parts: dict[str, Any],
) -> None:
    texts = tuple(dumps(value).decode() for value in (totals, made_by, parts))
    values = (seq, at, *texts, snapshot_digest(chain, seq, at, *texts), 0)
    write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def read_parts(connection: sqlite3.Connection, seq: int, parts: dict[str, Any]) -> dict[str, bytes]:
    """The parts, whole; ValueError if they are not what was written."""
    found = {}
    for name, told in parts.items():
        sql = "SELECT data FROM chunks WHERE seq = ? AND part = ? ORDER BY number"
        data = b"".join(row[0] for row in connection.execute(sql, (seq, name)))
        if describe({name: data})[name] != told:
            raise ValueError(f"is not what was written: {name}")
        found[name] = data
    return found
