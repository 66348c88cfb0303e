"""Whole files, say every night: decide for all rows of one, and learn from a file of answers later.

A model file is replaced in one step, and only if no other command has replaced it meanwhile. It knows which
rounds were answered, so the same answers are learnt from once, however often they are handed in.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superarm._extras import require_extra
from superarm._files import atomic_path, check_place, file_digest, sync
from superarm._progress import Progress, progress_bar
from superarm._types import Array, Cell
from superarm.data.cells import is_missing, json_row, to_word
from superarm.data.column import Column
from superarm.data.columns import Columns
from superarm.data.labels import Label
from superarm.data.tables import open_table, read_matrix
from superarm.decisions.decisions import Decisions
from superarm.errors import FeedbackError, InvalidInput, Unquoted, at_row
from superarm.learners import Learner, load
from superarm.logs import Log, Writer
from superarm.logs.parsing import parse_hit
from superarm.parameters import existing_file

if TYPE_CHECKING:
    import polars

__all__ = ["DecideSummary", "LearnSummary", "decide_file", "learn_file"]

CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class DecideSummary:
    """What `decide_file` has done.

    Attributes:
        rows: how many there were.
        ids: the column of their ids; ``None``: their rounds, from ``first_round`` on, are the ids.
        first_round: the round of the first row.
        missing: columns that the model was trained with and the file does not have: their values are missing.
        unused: columns that it was not trained with.
    """

    rows: int
    ids: str | None
    first_round: int
    missing: tuple[str, ...]
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearnSummary:
    """What `learn_file` has done.

    Attributes:
        learnt: answers that were new.
        already_learnt: answers that were learnt from before, and were not again.
        unanswered: decisions that have no answer yet.
        unknown: answers to no decision in the file.
        logged: answered decisions that were written to a log.
    """

    learnt: int
    already_learnt: int
    unanswered: int
    unknown: int
    logged: int


def decide_file(
    model: Path,
    rows: Path,
    output: Path,
    *,
    id_column: str | None = None,
    set_size: int | None = None,
    coverage: float | None = None,
    vectors: Path | None = None,
    progress: Progress = None,
) -> DecideSummary:
    """Choose a set for every row of a file, and write them to ``output``.

    Args:
        model: a model file; its rounds go on.
        rows: .parquet, .csv or .jsonl with a column for each feature; .npy, or .npz with X.
        output: a .parquet file: a row for each decision, with all that `learn_file` needs.
        id_column: the column that names a row; by default ``id``, if all its values differ; else rounds do.
        set_size: how many labels to show; with a promised coverage, the most.
        coverage: another promise than the model's, for these rows.
        vectors: an .npy whose row i becomes a column of row i.
        progress: True shows a bar; a function is called with the number of rows since its last call.
    """
    require_extra("logs")
    import polars as pl

    if output.suffix.lower() != ".parquet":
        raise InvalidInput.must("output", "decide", "a .parquet file", str(output))
    digest = file_digest(existing_file(model))
    learner = load(model)
    check_place(output, "output", "decide")
    X, ids, missing, unused = _read_rows(learner, rows, id_column, vectors)
    n = len(X) if isinstance(X, list) else X.shape[0]
    first = learner.round
    if not n:
        raise InvalidInput(f"{rows} has no rows")
    frames = []
    with progress_bar(int(n), "rows", progress=progress) as tick:
        for start in range(0, n, CHUNK):
            part = learner.decide_many(X[start : start + CHUNK], set_size=set_size, coverage=coverage)
            frames.append(part.to_frame())
            tick(len(part))
    frame = pl.concat(frames)
    if isinstance(X, list):  # as it came, for the log that learn_file can write
        texts = [json.dumps(json_row(row), ensure_ascii=False) for row in X]
        frame = frame.with_columns(pl.Series("named", texts))
    names = pl.Series("id", ids) if ids is not None else frame["round"].alias("id")
    frame.insert_column(0, names.cast(pl.String))
    # The decisions are whole on disk before the model goes on, and appear after it has: a command that
    # is stopped leaves nothing behind, or rounds without decisions.
    with atomic_path(output) as part_file:
        frame.write_parquet(part_file)
        sync(part_file)
        _replace(model, digest, learner)
    return DecideSummary(int(n), None if ids is None else id_column or "id", first, missing, unused)


def learn_file(
    model: Path,
    decisions: Path,
    answers: Path,
    *,
    id_column: str = "id",
    hit_column: str = "hit",
    label_column: str = "label",
    log: Path | None = None,
    progress: Progress = None,
) -> LearnSummary:
    """Learn from a file of answers to the decisions that `decide_file` wrote.

    Args:
        model: the model file that made them; it is replaced.
        decisions: what `decide_file` wrote.
        answers: .parquet, .csv or .jsonl with ids, and hits or the right labels.
        id_column, hit_column, label_column: their columns.
        log: write the answered decisions to this file, as a log that `superarm.logs` reads.
        progress: True shows a bar; a function is called with the number of answers since its last call.
    """
    digest = file_digest(existing_file(model))
    learner = load(model)
    table = _decisions_table(decisions)
    outcomes, kind = _read_answers(answers, id_column, hit_column, label_column)
    ids = table["id"].to_list()
    unknown = outcomes.keys() - set(ids)
    if outcomes and len(unknown) == len(outcomes):
        raise FeedbackError.must(id_column, str(answers), f"ids of {decisions}", next(iter(outcomes)))
    batch = Decisions.from_frame(table, learner.vocabulary)
    if batch.learner != learner.id:
        raise FeedbackError.must("learner", str(decisions), f"that of {model} ({learner.id})", batch.learner)
    learnt_before = np.array([int(number) in learner.answered for number in batch.round], bool)
    answered = np.array([id_ in outcomes for id_ in ids], bool)
    new = np.flatnonzero(answered & ~learnt_before)
    learnt = 0
    spelling: dict[str | bool, Label] = {
        str(label): label for label in learner.vocabulary.all()
    }  # a file may have "3" for 3
    with progress_bar(len(new), "answers", progress=progress) as tick:
        for start in range(0, len(new), CHUNK):
            part = new[start : start + CHUNK]
            part_answers = [spelling.get(outcomes[ids[i]], outcomes[ids[i]]) for i in part]
            learnt += learner.update_many(batch[part], **{kind: part_answers})
            tick(len(part))
    if learnt:
        _replace(model, digest, learner)
    logged = 0
    if log is not None and answered.any():
        column = table["id"].replace_strict(outcomes, default=None).alias(kind.removesuffix("s"))
        logged = _write_log(table.with_columns(column).filter(answered), log)
    return LearnSummary(
        learnt=learnt,
        already_learnt=int((answered & learnt_before).sum()),
        unanswered=int((~answered & ~learnt_before).sum()),
        unknown=len(unknown),
        logged=logged,
    )


def _decisions_table(path: Path) -> polars.DataFrame:
    """Return the decisions that `decide_file` wrote."""
    require_extra("logs")
    import polars as pl

    wanted = "what superarm decide wrote"
    try:
        table = pl.read_parquet(existing_file(path))
    except pl.exceptions.PolarsError as error:
        raise InvalidInput.must("content", str(path), wanted, error) from error
    if not {"id", "round"} <= set(table.columns):
        raise InvalidInput.must("content", str(path), wanted, table.columns)
    return table


def _write_log(answered: polars.DataFrame, path: Path) -> int:
    """Write decisions with their answers as a log; return how many there are."""
    if "named" in answered.columns:
        answered = answered.with_columns(x=answered["named"]).drop("x_indices", "x_values", strict=False)
    with Writer(path) as writer:
        for record in Log(answered):
            writer.add(record)
    return writer.rows


def _replace(model: Path, digest: str, learner: Learner) -> None:
    """Replace a model file, if it still has this digest."""
    # of two commands that end at the same time, the second sees what the first wrote
    with _locked(model.parent):
        if file_digest(existing_file(model)) != digest:
            raise InvalidInput(
                f"{model} was changed while this command ran: nothing was written, run it again"
            )
        learner.save(model)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other command is in such a block; a folder has a lock on Linux and macOS alone."""
    if os.name == "nt":
        yield
        return
    import fcntl

    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _column_names(rows: list[dict[str, Cell]]) -> list[str]:
    return list(dict.fromkeys(str(name) for row in rows for name in row))


class _RowsToDecide(NamedTuple):
    """The rows of a file as the model takes them; their ids, if they have any; missing and unused columns."""

    X: Any
    ids: list[str] | None = None
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def _read_rows(learner: Learner, path: Path, id_column: str | None, vectors: Path | None) -> _RowsToDecide:
    if path.suffix.lower() in (".npy", ".npz"):
        return _RowsToDecide(read_matrix(path))
    rows = list(open_table(path, vectors=vectors).valid_rows())
    ids = None
    names = _column_names(rows)
    if not rows:
        raise InvalidInput(f"{path} has no rows")
    if id_column is not None and id_column not in names:
        raise InvalidInput.must("id_column", str(path), f"one of {', '.join(names)}", id_column)
    column = id_column or "id"
    if column in names:
        names.remove(column)
        ids = [to_word(row[column]) for row in rows if row.get(column) is not None]
        repeated = [name for name, count in Counter(ids).items() if count > 1]
        if repeated or len(ids) < len(rows):
            if id_column is not None:
                wanted = "different in every row (without such a column, rounds are the ids)"
                raise InvalidInput.must(column, str(path), wanted, repeated[0] if repeated else None)
            ids = None
    if learner.columns is None and learner.n_features is None:
        learner.use_columns(Columns.infer({name: row.get(name) for name in names} for row in rows))
    if learner.columns is None:
        return _RowsToDecide(_numbers(learner, rows, names, path), ids)
    features = names if learner.columns.is_open else learner.columns.names
    missing = tuple(name for name in features if name not in names)
    unused = tuple(name for name in names if name not in features)
    if len(missing) == len(features):
        raise InvalidInput.must("columns", str(path), f"some of {', '.join(features)}", list(unused))
    return _RowsToDecide([{name: row.get(name) for name in features} for row in rows], ids, missing, unused)


def _numbers(learner: Learner, rows: list[dict[str, Cell]], names: list[str], path: Path) -> Array:
    """Return the rows for a model that knows no names: all columns, in their order."""
    if len(names) != learner.n_features:
        wanted = f"columns for the {learner.n_features} features of the model"
        raise InvalidInput.must("content", str(path), wanted, names)
    X = np.empty((len(rows), len(names)))
    for j, column in enumerate(Column(name, "numbers") for name in names):
        for i, row in enumerate(rows):
            number = column.parse(row.get(column.name), str(path))
            if not isinstance(number, float):
                where = at_row(str(path), i)
                wanted = "a number (this model takes no missing values)"
                raise InvalidInput.must(column.name, where, wanted, row.get(column.name))
            X[i, j] = number
    return X


def _read_answers(
    path: Path, id_column: str, hit_column: str, label_column: str
) -> tuple[dict[str, bool | str], str]:
    """Return the answer to each id that has one; and whether they are hits or labels."""
    rows = list(open_table(path).valid_rows())
    names = _column_names(rows)
    if not path.stat().st_size and path.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InvalidInput(f"{path} is empty: a file of answers has at least a header")
    if not rows:
        return {}, "hits"
    if id_column not in names:
        raise InvalidInput.must("id_column", str(path), f"one of {', '.join(names)}", id_column)
    if (hit_column in names) == (label_column in names):
        wanted = f"with a column {hit_column} or {label_column}, and not both"
        raise InvalidInput.must("content", str(path), wanted, names)
    hits = hit_column in names
    column = hit_column if hits else label_column
    answers = dict[str, bool | str]()
    for number, row in enumerate(rows):
        value = row.get(column)
        if row.get(id_column) is None or is_missing(value):
            continue
        id_ = to_word(row[id_column])
        answer = parse_hit(value, column, at_row(str(path), number)) if hits else to_word(value).strip()
        if answer is not None and answers.setdefault(id_, answer) != answer:
            raise FeedbackError.must(
                id_column, str(path), "answered once", Unquoted(f"two answers to {id_!r}")
            )
    return answers, "hits" if hits else "labels"
