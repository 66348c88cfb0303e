"""Files from the net, whole or not at all: checksums, mirrors, resumed downloads, offline directories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_dir

from superarm._extras import require_extra
from superarm._files import file_digest, move_durably, write_atomically
from superarm._progress import Progress, Tick, progress_bar
from superarm.errors import MissingData

HOME_VARIABLE, OFFLINE_VARIABLE, MIRROR_VARIABLE = (
    "SUPERARM_DATA",
    "SUPERARM_DATA_FROM",
    "SUPERARM_DATA_MIRROR",
)
BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file, where it can be had, and what it must be."""

    folder: str  # MNIST and Fashion-MNIST use the same file names
    name: str
    mirrors: tuple[str, ...]  # addresses without the file's name
    digest: str  # "sha256:..." or "md5:..."
    size: int


def data_home() -> Path:
    """Return where downloaded data is kept: $SUPERARM_DATA, or the system's folder for caches."""
    return Path(os.environ.get(HOME_VARIABLE) or user_cache_dir("superarm", appauthor=False))


def has_right_content(path: Path, file: RemoteFile) -> bool:
    """Return whether the file at ``path`` has the right content."""
    kind, _, wanted = file.digest.partition(":")
    return path.stat().st_size == file.size and file_digest(path, kind) == wanted


def is_present(file: RemoteFile) -> bool:
    """Return whether a file of the right size is here; its content is checked when it is opened."""
    return any(path.stat().st_size == file.size for path in _local_paths(file))


def find_file(file: RemoteFile, offline: Path | None = None) -> Path | None:
    """Return where the file is in the data home or in an offline directory, with the right content."""
    return next((path for path in _local_paths(file, offline) if has_right_content(path, file)), None)


def _local_paths(file: RemoteFile, offline: Path | None = None) -> list[Path]:
    """Return the files of that name in the data home and in offline directories."""
    paths = [data_home() / file.folder / file.name]
    for folder in (offline, os.environ.get(OFFLINE_VARIABLE)):
        if folder:
            paths += [Path(folder) / file.folder / file.name, Path(folder) / file.name]
    return [path for path in paths if path.is_file()]


def fetch_files(
    files: Sequence[RemoteFile],
    *,
    offline: Path | None = None,
    mirror: str | None = None,
    progress: Progress = None,
) -> list[Path]:
    """Return the files in the data home: found, copied from an offline directory, or downloaded.

    Args:
        files: what to get.
        offline: look here instead of the net.
        mirror: an address to try first; it has the files in folders by data set.
        progress: True shows a bar; a function is called with the number of bytes since its last call.
    """
    paths = []
    with progress_bar(sum(file.size for file in files), "bytes", progress=progress) as tick:
        for file in files:
            target = data_home() / file.folder / file.name
            copy = find_file(file, offline)
            if copy is None and offline is not None:
                wanted = Path(offline) / file.folder / file.name
                state = (
                    "is not the official file (its checksum differs)" if wanted.exists() else "is not there"
                )
                raise MissingData(f"{wanted} {state}.\n{_offline_help(files)}")
            if copy is None:
                reasons = _download(file, target, mirror or os.environ.get(MIRROR_VARIABLE), tick)
                if reasons:
                    why = "\n".join(reasons)
                    raise MissingData(f"{file.name} could not be downloaded:\n{why}\n{_offline_help(files)}")
            elif copy != target:
                _copy(copy, target)
            paths.append(target)
    return paths


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as old:
        write_atomically(target, lambda new: shutil.copyfileobj(old, new))


def _download(file: RemoteFile, target: Path, mirror: str | None, tick: Tick) -> list[str]:
    """Download from the first mirror that gives the right file; else return the reason for each.

    What has come stays in a ``.part`` file when the connection breaks; the next mirror or attempt goes on from there.
    """
    require_extra("data")
    import requests

    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{file.name}.part")
    first = (f"{mirror.rstrip('/')}/{file.folder}/",) if mirror else ()
    reasons = []
    for address in (*first, *file.mirrors):
        try:
            _resume(address + file.name, part, tick)
        except (requests.RequestException, OSError) as error:
            reasons.append(f"  {address}{file.name}: {_reason(error)}")
            continue
        if has_right_content(part, file):
            move_durably(part, target)
            return []
        part.unlink()
        reasons.append(f"  {address}{file.name}: its checksum differs")
    return reasons


def _resume(url: str, part: Path, tick: Tick) -> None:
    """Download what is missing of a file; all of it from a server without ranges."""
    import requests

    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, stream=True, timeout=30, headers=headers) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:  # nothing is missing
            return
        response.raise_for_status()
        resumed = response.status_code == requests.codes.partial_content
        if resumed:
            tick(have)
        with part.open("ab" if resumed else "wb") as file:
            for block in response.iter_content(BLOCK):
                file.write(block)
                tick(len(block))


def _reason(error: Exception) -> str:
    """Return why a download failed, in a few words; the libraries' own messages nest five deep."""
    import requests

    response = getattr(error, "response", None)
    if response is not None:
        return f"the server says {response.status_code}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    return "broken off" if isinstance(error, requests.exceptions.ChunkedEncodingError) else "no connection"


def _offline_help(files: Sequence[RemoteFile]) -> str:
    folder = files[0].folder
    names = "".join(f"  {f.mirrors[0]}{f.name}  ({f.size:,} bytes, {f.digest})\n" for f in files)
    return (
        f"Without a network, get on another machine\n{names}put into DIR/{folder}/, and run: "
        f"superarm data get {folder} --from DIR (or set {OFFLINE_VARIABLE}=DIR).\n"
        "A download that was broken off goes on where it stopped."
    )
