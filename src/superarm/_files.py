"""Files that survive a crash, and model files: named arrays and a JSON header in one .npz; no pickle."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from glob import escape
from os import PathLike
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, BinaryIO

import numpy as np

from superarm.errors import InvalidInput, MissingModel, ModelFileError, SuperarmError, Unquoted

FORMAT = "superarm-model"
JOURNAL_SIDECARS = ("-mark", "-wal", "-shm")  # endings of what SQLite and we write beside a journal
SQLITE_HEADER = b"SQLite format 3\0"
READ_ERRORS = (  # what NumPy raises for files that are no .npy and no .npz, or not whole
    *(OSError, EOFError, KeyError, TypeError, ValueError, AttributeError),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError),
)
_PARSING_LOCK = Lock()  # CPython 3.11 may fail to parse the headers of arrays in two threads at once
VERSION = 3  # 1 and 2 were 0.1 and 0.2, which were never released


def is_sqlite_file(path: Path) -> bool:
    """Return whether a file begins as SQLite's do, whole or not."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    except OSError:
        return False


def check_place(
    path: str | PathLike[str], parameter: str, owner: str, error: type[SuperarmError] = InvalidInput
) -> None:
    """Refuse to write a file into no folder, or in place of one; ``parameter`` of ``owner`` says where."""
    if not Path(path).parent.is_dir() or Path(path).is_dir():
        got = Unquoted(f"the folder {path}") if Path(path).is_dir() else os.fspath(path)
        raise error.must(parameter, owner, "a file in an existing folder", got)


def write_atomically(path: str | PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Let ``write(file)`` fill a new file, make it durable, and only then put it in place."""
    with atomic_path(Path(path)) as part, part.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a path beside ``target``; a block that ends well has made the file there durable, and it takes its name."""
    part = target.with_name(f".{target.name}.{os.getpid()}-{get_ident()}.part")
    files = [Path(f"{part}{ending}") for ending in ("", "-journal", *JOURNAL_SIDECARS)]
    discard(*files)
    try:
        yield part
        _rename(part, target)
    finally:
        discard(*files)


def move_durably(part: Path, target: Path) -> None:
    """Make a finished file durable, and only then give it the name of ``target``, in the same folder."""
    sync(part)
    _rename(part, target)


def _rename(part: Path, target: Path) -> None:
    os.replace(part, target)  # noqa: PTH105  (os.*: tests make each of these calls fail in turn)
    if os.name != "nt":
        sync(target.parent)


def delete_leftovers(target: Path) -> None:
    """Delete what a crash has left of new files that had not got their name yet."""
    is_part = re.compile(rf"\.{re.escape(target.name)}\.\d+-\d+\.part").match
    discard(*(file for file in target.parent.glob(f".{escape(target.name)}.*") if is_part(file.name)))


def discard(*paths: Path) -> None:
    """Delete files, as far as that can be done."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Make a file durable, or the names in a folder: a rename survives a power cut only after that."""
    opened = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows syncs what can be written
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def file_digest(path: Path, kind: str = "sha256") -> str:
    """Return a hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def write_model(path: str | PathLike[str] | BinaryIO, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a model file; on any failure the file that was there stays as it was."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **header})
    blob = np.frombuffer(text.encode(), np.uint8)
    if isinstance(path, str | PathLike):
        check_place(path, "path", "a model file", ModelFileError)
        write_atomically(path, lambda file: np.savez(file, header=blob, **arrays))
    else:
        np.savez(path, header=blob, **arrays)


@contextmanager
def open_npz(path: str | PathLike[str] | BinaryIO) -> Iterator[Any]:
    """Yield the arrays of an .npz by name, without pickles; where it is none, one of `READ_ERRORS` is raised."""
    opening = Path(path).open("rb") if isinstance(path, str | PathLike) else nullcontext(path)  # noqa: SIM115
    with opening as opened, _PARSING_LOCK:
        start = opened.tell()
        if not zipfile.is_zipfile(opened):  # of which NumPy says how to unpickle it
            raise zipfile.BadZipFile("a foreign or truncated file")
        opened.seek(start)
        with np.load(opened, allow_pickle=False) as file:
            yield file


def read_model(path: str | PathLike[str] | BinaryIO) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of a model file."""
    if not isinstance(path, str | PathLike) and not hasattr(path, "read"):
        raise ModelFileError.must("path", "a model file", "a path, or a file open for reading bytes", path)
    name = os.fspath(path) if isinstance(path, str | PathLike) else "an open file"
    try:
        with open_npz(path) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop("header").tobytes())
        is_model = header["format"] == FORMAT
        version = int(header["version"])
    except FileNotFoundError:
        raise MissingModel(f"no such file: {name}") from None
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read: {error.strerror or error}") from error
    except READ_ERRORS as error:
        wanted = "a whole superarm model"
        raise ModelFileError.must("content", name, wanted, Unquoted("a foreign or truncated file")) from error
    if not is_model:
        raise ModelFileError.must("format", name, repr(FORMAT), header["format"])
    if version < VERSION:
        wanted = f"{VERSION}: version {version} was made by a superarm that was never released"
        raise ModelFileError.must("version", name, f"{wanted}; train the model anew", version)
    if version > VERSION:
        raise ModelFileError.must("version", name, f"at most {VERSION} (install a newer superarm)", version)
    return header, arrays
