"""The decision log of a journal: one row per decision, with what evaluation needs.

    id time x labels drawn top eligible set_size gamma propensity ordered_propensity hit label learner context

``x`` is a list of floats, or ``x_indices`` and ``x_values`` take its place if the learner's rows are
sparse. ``time`` is ISO 8601, UTC. ``hit`` and ``label`` are the world's answer, in time or late, and null
without one: the default outcome of a timeout is nobody's observation and does not count here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from math import exp
from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput
from superarm.rows import SparseRow
from superarm.service.core.events import DECISION, OUTCOME, unpack_row
from superarm.service.core.journal import Journal
from superarm.storage import write_atomically

__all__ = ["export", "rows"]

AT_ONCE = 20_000


def rows(journal: Journal) -> Iterator[dict[str, Any]]:
    """A row for each decision, in the order they were made.

    Two passes: outcomes come after their decisions, days later perhaps, and are small.
    """
    answers = {}
    for event in journal.events():
        if event.kind == OUTCOME:  # at most one for each decision
            body = event.body
            answers[body["of"]] = body["hit"], body["label"]
    learner = journal.meta()["learner"]
    for event in journal.events():
        if event.kind != DECISION:
            continue
        assert event.x is not None
        body = event.body
        x = unpack_row(event.x, body["width"])
        if isinstance(x, SparseRow):
            row = {"x_indices": x.indices.tolist(), "x_values": x.values.tolist()}
        else:
            row = {"x": x.tolist()}
        ordered, of_set, _ = body["odds"]
        hit, label = answers.get(event.seq, (None, None))
        yield {
            "id": event.id,
            "time": datetime.fromtimestamp(event.time, UTC).isoformat(),
            **row,
            **{name: body[name] for name in ("labels", "drawn", "top", "eligible")},
            "set_size": len(body["labels"]),
            "gamma": body["gamma"],
            "propensity": None if of_set is None else exp(of_set),
            "ordered_propensity": None if ordered is None else exp(ordered),
            "hit": hit,
            "label": label,
            "learner": learner,
            "context": None if body["context"] is None else json.dumps(body["context"], ensure_ascii=False),
        }


def export(journal: Journal, path: str | Path) -> int:
    """Write the decision log, as Parquet or JSON lines by the file's ending; how many rows."""
    target, count = Path(path), 0
    if target.suffix not in (".parquet", ".jsonl"):
        raise InvalidInput.must(
            "output", "superarm export", "a file that ends in .parquet or .jsonl", str(path)
        )

    def lines(file: Any) -> None:
        nonlocal count
        for row in rows(journal):
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            count += 1

    def table(file: Any) -> None:
        nonlocal count
        import polars as pl

        texts, numbers = pl.List(pl.String), pl.List(pl.Float32)
        kinds: dict[str, Any] = {
            "id": pl.String,
            "time": pl.String,
            "x": numbers,
            "x_indices": pl.List(pl.Int32),
            "x_values": numbers,
        }
        kinds |= dict.fromkeys(("labels", "drawn", "top", "eligible"), texts)
        kinds |= {
            "set_size": pl.Int32,
            **dict.fromkeys(("gamma", "propensity", "ordered_propensity"), pl.Float64),
        }
        kinds |= {"hit": pl.Boolean, **dict.fromkeys(("label", "learner", "context"), pl.String)}
        parts = []
        source = rows(journal)
        while part := list(islice(source, AT_ONCE)):
            schema = {name: kind for name, kind in kinds.items() if name in part[0]}
            parts.append(pl.DataFrame(part, schema=schema))
            count += len(part)
        first = (
            parts[0]
            if parts
            else pl.DataFrame(schema={n: k for n, k in kinds.items() if not n.startswith("x_")})
        )
        pl.concat(parts or [first]).write_parquet(file)

    write_atomically(target, lines if target.suffix == ".jsonl" else table)
    return count
