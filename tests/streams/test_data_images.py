"""Image sets: the official formats, checksums, mirrors, resumed downloads, offline directories."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import struct
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from lab_kit import shared_data
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.errors import InvalidInput, MissingData
from superarm.streams import NAMES, download, open_data
from superarm.streams.catalog import content_digest
from superarm.streams.download import RemoteFile, data_home, fetch_files, find_file
from superarm.streams.images import IMAGE_SETS, load_images, read_cifar10, read_idx, read_svhn


@pytest.fixture(autouse=True)
def _own_data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERARM_DATA", str(tmp_path / "home"))
    monkeypatch.delenv("SUPERARM_DATA_FROM", raising=False)
    monkeypatch.delenv("SUPERARM_DATA_MIRROR", raising=False)


def idx(array):
    head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.tobytes(), mtime=0)


def cifar_archive(per_batch, leave_out=()):
    random = np.random.default_rng(1)
    packed, records = io.BytesIO(), []
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin", "readme.html"]:
            if name in leave_out:
                continue
            content = random.integers(0, 256, (per_batch, 3073), dtype=np.uint8)
            content[:, 0] %= 10
            records.append(content)
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = content.nbytes
            archive.addfile(member, io.BytesIO(content.tobytes()))
    return packed.getvalue(), np.concatenate(records[:-1])


def tiny_set(monkeypatch, name, contents):
    """An image set with small files instead of the official ones."""
    files = tuple(
        replace(f, digest=f"sha256:{hashlib.sha256(c).hexdigest()}", size=len(c))
        for f, c in zip(IMAGE_SETS[name].files, contents, strict=True)
    )
    monkeypatch.setitem(IMAGE_SETS, name, replace(IMAGE_SETS[name], files=files))
    return {f"{f.folder}/{f.name}": c for f, c in zip(files, contents, strict=True)}


def tiny_mnist(monkeypatch, name="mnist", n=30):
    random = np.random.default_rng(0)
    parts = [
        random.integers(0, 256, (n, 28, 28), dtype=np.uint8),
        np.arange(n, dtype=np.uint8) % 10,
        random.integers(0, 256, (10, 28, 28), dtype=np.uint8),
        np.arange(10, dtype=np.uint8),
    ]
    return tiny_set(monkeypatch, name, [idx(p) for p in parts]), parts


def put(folder, contents):
    for name, content in contents.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


# ---------------------------------------------------------------- formats


def test_idx(tmp_path):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "a.gz").write_bytes(idx(array))
    np.testing.assert_array_equal(read_idx(tmp_path / "a.gz"), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no gzip", "a whole gzip file"),
        (idx(np.zeros(9, np.uint8))[:-9], "a whole gzip file"),
        (gzip.compress(b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", mtime=0), "an IDX file of bytes"),
        (gzip.compress(b"", mtime=0), "an IDX file of bytes"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x05abc", mtime=0), "5 bytes, as its head says, got 3"),
    ],
)
def test_idx_files_that_are_refused(tmp_path, content, message):
    (tmp_path / "a.gz").write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        read_idx(tmp_path / "a.gz")


def test_cifar10_binary(tmp_path):
    content, records = cifar_archive(4)
    (tmp_path / "c.tar.gz").write_bytes(content)
    pixels, y = read_cifar10([tmp_path / "c.tar.gz"])
    assert pixels.shape == (24, 32, 32, 3)
    np.testing.assert_array_equal(y, records[:, 0])
    # a record is the label, then all red bytes row by row, then green, then blue
    assert pixels[5, 7, 9, 1] == records[5, 1 + 1024 + 7 * 32 + 9]


def test_cifar10_archives_that_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(cifar_archive(1, leave_out=["test_batch.bin"])[0])
    with pytest.raises(InvalidInput, match=r"an archive with data_batch_1.bin"):
        read_cifar10([tmp_path / "a"])
    (tmp_path / "b").write_bytes(b"no tar")
    with pytest.raises(InvalidInput, match="CIFAR-10's binary archive"):
        read_cifar10([tmp_path / "b"])


def test_svhn(tmp_path):
    from scipy.io import savemat

    X = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 5), dtype=np.uint8)
    savemat(tmp_path / "a.mat", {"X": X, "y": np.array([[1], [10], [9], [10], [5]], np.uint8)})
    pixels, y = read_svhn([tmp_path / "a.mat"])
    np.testing.assert_array_equal(y, [1, 0, 9, 0, 5])  # the digit 0 is label 10 there
    np.testing.assert_array_equal(pixels[3], X[..., 3])
    (tmp_path / "b.mat").write_bytes(b"no matlab file, though it is long enough to be one" * 10)
    with pytest.raises(InvalidInput, match="a MATLAB file with X and y"):
        read_svhn([tmp_path / "b.mat"])


def test_svhn_as_a_set(tmp_path, monkeypatch):
    from scipy.io import savemat

    contents = []
    for n in (4, 3):
        packed = io.BytesIO()
        X = np.full((32, 32, 3, n), n, np.uint8)
        savemat(packed, {"X": X, "y": np.arange(1, n + 1, dtype=np.uint8)[:, None]})
        contents.append(packed.getvalue())
    put(tmp_path / "home", tiny_set(monkeypatch, "svhn", contents))
    images = load_images("svhn")
    assert images.pixels[:, 0, 0, 0].tolist() == [4, 4, 4, 4, 3, 3, 3]  # the training part comes first
    assert images.y.tolist() == [1, 2, 3, 4, 1, 2, 3]


def test_the_pinned_files_are_whole():
    for one in IMAGE_SETS.values():
        for file in one.files:
            assert file.folder == one.name
            assert len(file.digest) == len("sha256:") + 64
            assert file.size > 4000
            assert all(address.startswith("http") and address.endswith("/") for address in file.mirrors)
    digests = [file.digest for one in IMAGE_SETS.values() for file in one.files]
    assert len(set(digests)) == len(digests) == 11


# ---------------------------------------------------------------- getting them


def test_an_offline_directory(tmp_path, monkeypatch):
    contents, parts = tiny_mnist(monkeypatch)
    put(tmp_path / "stick", contents)
    result = CliRunner().invoke(app, ["data", "get", "mnist", "--from", str(tmp_path / "stick")])
    assert result.exit_code == 0, result.output
    assert "4 file(s) checked" in result.output
    images = load_images("mnist")
    np.testing.assert_array_equal(images.pixels[..., 0], np.concatenate([parts[0], parts[2]]))
    np.testing.assert_array_equal(images.y, np.concatenate([parts[1], parts[3]]))
    stream = open_data("mnist")
    assert (stream.n_features, stream.n_labels, len(stream.y)) == (784, 10, 40)
    assert content_digest("mnist") != content_digest("digits")


def test_the_environment_names_an_offline_directory(tmp_path, monkeypatch):
    contents, _ = tiny_mnist(monkeypatch, "fashion-mnist")
    put(tmp_path / "stick", contents)
    monkeypatch.setenv("SUPERARM_DATA_FROM", str(tmp_path / "stick"))
    assert open_data("fashion-mnist").labels[:2] == ("T-shirt/top", "Trouser")


def test_a_file_that_is_not_the_official_one_is_refused(tmp_path, monkeypatch):
    contents, _ = tiny_mnist(monkeypatch)
    name = next(iter(contents))
    put(tmp_path / "stick", contents | {name: contents[name][:-1] + b"x"})
    with pytest.raises(MissingData, match="is not the official file"):
        fetch_files(IMAGE_SETS["mnist"].files, offline=tmp_path / "stick")
    with pytest.raises(MissingData, match="is not there"):
        fetch_files(IMAGE_SETS["mnist"].files, offline=tmp_path / "empty")


def test_data_that_is_not_here_says_how_to_get_it():
    with pytest.raises(MissingData, match="run: superarm data get cifar10"):
        open_data("cifar10")
    with pytest.raises(MissingData, match="run: superarm data features svhn"):
        open_data("svhn-vgg16")


class Handler(BaseHTTPRequestHandler):
    """Serves ``contents``; breaks off a first response after ``cut`` bytes; may know ranges."""

    contents: dict
    cut: int | None
    asked: list
    knows_ranges: bool

    def do_GET(self):
        content = self.contents.get(self.path.lstrip("/"))
        if content is None:
            self.send_error(404)
            return
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        type(self).asked.append((self.path, start))
        if not self.knows_ranges:
            start = 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop, type(self).cut = self.cut, None
        self.wfile.write(content[start:stop])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    handler = type("Own", (Handler,), {"contents": {}, "cut": None, "asked": [], "knows_ranges": True})
    one = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=one.serve_forever, daemon=True)
    thread.start()
    yield handler, f"http://127.0.0.1:{one.server_port}"
    one.shutdown()
    one.server_close()
    thread.join()


def remote(content, *mirrors):
    return RemoteFile(
        "things", "thing.bin", mirrors, f"sha256:{hashlib.sha256(content).hexdigest()}", len(content)
    )


def test_download_and_progress(server, monkeypatch):
    handler, address = server
    handler.contents, _ = tiny_mnist(monkeypatch)
    seen = []
    paths = fetch_files(IMAGE_SETS["mnist"].files, mirror=address, progress=seen.append)
    assert sum(seen) == sum(len(c) for c in handler.contents.values())
    assert [p.name for p in paths] == [f.name for f in IMAGE_SETS["mnist"].files]
    asked = len(handler.asked)
    fetch_files(IMAGE_SETS["mnist"].files, mirror=address)
    assert len(handler.asked) == asked  # what is there is not asked for again


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_download_that_was_broken_off_goes_on(server, knows_ranges):
    handler, address = server
    handler.knows_ranges = knows_ranges
    content = np.random.default_rng(0).bytes(300_000)
    handler.contents = {"things/thing.bin": content}
    handler.cut = 200_000
    file = remote(content, f"{address}/things/")
    with pytest.raises(MissingData, match=r"broken off|no connection"):
        fetch_files([file])
    assert find_file(file) is None
    seen = []
    assert fetch_files([file], progress=seen.append)[0].read_bytes() == content
    (_, first), (_, second) = handler.asked
    assert first == 0
    assert 100_000 < second <= 200_000
    assert sum(seen) == 300_000
    assert [path.name for path in (data_home() / "things").iterdir()] == ["thing.bin"]


def test_a_part_that_is_whole_or_wrong_is_told_by_its_checksum(server):
    handler, address = server
    handler.contents = {"things/thing.bin": b"content"}
    file = remote(b"content", f"{address}/things/")
    part = data_home() / "things" / ".thing.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"contrary")
    with pytest.raises(MissingData, match="its checksum differs"):
        fetch_files([file])
    assert not part.exists()
    part.write_bytes(b"content")  # broken off after the last byte
    assert fetch_files([file])[0].read_bytes() == b"content"
    assert [start for _, start in handler.asked] == [8, 7]


def test_listing_reads_no_file(server, monkeypatch):
    handler, address = server
    handler.contents, _ = tiny_mnist(monkeypatch)
    fetch_files(IMAGE_SETS["mnist"].files, mirror=address)
    monkeypatch.setattr(download, "file_digest", lambda *_: pytest.fail("a file was read"))
    result = CliRunner().invoke(app, ["data", "list"])
    assert re.search(r"\nmnist .* here\n", result.output), result.output
    assert all(name in result.output for name in NAMES)
    assert re.search(r"\ncifar10 .* to get, 170 MB\n", result.output)


def test_mirrors_are_tried_in_turn(server):
    handler, address = server
    content = b"the right content"
    handler.contents = {"wrong/thing.bin": b"the wrong content", "right/thing.bin": content}
    file = remote(content, f"{address}/none/", f"{address}/wrong/", f"{address}/right/")
    assert fetch_files([file])[0].read_bytes() == content


def test_no_network_says_what_to_put_where():
    file = remote(b"x", "http://127.0.0.1:1/")
    with pytest.raises(MissingData) as error:
        fetch_files([file])
    text = str(error.value)
    assert "http://127.0.0.1:1/thing.bin: no connection" in text
    assert "put into DIR/things/, and run: superarm data get things --from DIR" in text
    assert file.digest in text


def test_a_server_that_refuses_is_named(server):
    _, address = server
    with pytest.raises(MissingData, match="the server says 404"):
        fetch_files([remote(b"x", f"{address}/")])


def test_unknown_names_are_refused():
    with pytest.raises(InvalidInput, match="NAMES of superarm data get must be among mnist"):
        CliRunner().invoke(app, ["data", "get", "imagenet"], catch_exceptions=False)


@pytest.mark.slow
def test_real_mnist_through_the_official_format(tmp_path, monkeypatch):
    with np.load(shared_data("mnist.npz")) as file:
        parts = [file[k][:5000] for k in ("x_train", "y_train", "x_test", "y_test")]
    contents = tiny_set(monkeypatch, "mnist", [idx(p) for p in parts])
    put(tmp_path / "stick", contents)
    fetch_files(IMAGE_SETS["mnist"].files, offline=tmp_path / "stick")
    import superarm as sa

    learner = sa.Perceptron(n_labels=10, n_features=784, seed=0)
    assert sa.simulate(learner, open_data("mnist"), 20_000).error_rate < 0.2
