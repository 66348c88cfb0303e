"""Files that are not what they seem, against every command: one sentence each, and never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import superarm as sa

ENDINGS = ("csv", "tsv", "jsonl", "parquet", "dsjson", "npz", "npy", "toml", "txt", "db", "svm", "py")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of good files, and of files that are broken in every way, with every ending."""
    folder = tmp_path_factory.mktemp("odd")
    good = sa.SetLogit(labels=["a", "b", "c"], set_size=1, seed=1)
    rows = pl.DataFrame({"id": ["r1", "r2"], "age": [1, 2], "city": ["Rome", "Oslo"]})
    good.decide_many(rows.drop("id"))
    good.save(folder / "model.npz")
    rows.write_csv(folder / "rows.csv")
    (folder / "log.csv").write_text("age,city,labels,hit\n1,Rome,a;b,1\n2,Oslo,b;c,0\n3,Rome,a;c,1\n")
    (folder / "answers.csv").write_text("id,hit\nr1,1\n")
    (folder / "labels.txt").write_text("a\nb\nc\n")
    np.savez(folder / "data.npz", X=np.eye(4), y=np.arange(4))
    (folder / "spec.toml").write_text('[[data]]\nname = "digits"\n')
    broken: dict[str, bytes] = {
        "empty": b"",
        "bytes": bytes(range(256)) * 8,
        "latin": "age,labels,hit\n1,caf\xe9;b,1\n".encode("latin-1"),
        "zip": b"PK\x03\x04" + bytes(200),
        "words": b"nothing of the kind\n",
        "nul": b"\x00" * 300,
        "json": b'{"a": [1, 2\n',
        "par": b"PAR1" + bytes(50) + b"PAR1",
    }
    for ending in ENDINGS:
        (folder / f"folder.{ending}").mkdir()
        for name, content in broken.items():
            (folder / f"{name}.{ending}").write_bytes(content)
    np.savez(folder / "pickled.npz", X=np.array([{"a": 1}], object), y=np.array([1]))
    np.save(folder / "pickled.npy", np.array([{"a": 1}], object))
    np.savez(folder / "other.npz", Z=np.eye(3))
    np.save(folder / "flat.npy", np.arange(4.0))
    (folder / "half.npz").write_bytes((folder / "model.npz").read_bytes()[:900])
    (folder / "raises.py").write_text("raise RuntimeError('no')\n")
    return folder


def odd(*kinds: str) -> list[str]:
    """Every broken file with one of these endings."""
    names = ("none", "folder", "empty", "bytes", "latin", "zip", "words", "nul", "json", "par")
    return [f"{name}.{kind}" for kind in kinds for name in names]


TABLES, MODELS = odd("csv", "jsonl", "parquet", "tsv", "txt"), [*odd("npz"), "half.npz", "other.npz", "none"]
LOGS = [*odd("csv", "jsonl", "parquet", "dsjson"), "folder.txt", "no/such/folder/log.csv"]
MATRICES = [*odd("npy", "npz"), "pickled.npy", "pickled.npz", "flat.npy", "other.npz"]
JOURNALS = [*odd("db"), "no/such/folder/journal.db"]

WAYS: list[tuple[str, list[str]]] = [
    ("train {} --output m.npz", LOGS),
    ("train log.csv --output m.npz --features {}", MATRICES),
    ("train log.csv --output m.npz --labels {}", odd("txt")),
    ("train log.csv --output {}", ["no/such/folder/m.npz", "folder.npz"]),
    ("train log.csv --output m.npz --learner {}", ["none", "none.py:Mine", "words.py:No", "raises.py:No"]),
    ("train log.csv --output m.npz {}", ["--set-size=9", "--holdout=2", "--hit-column=no", "--labels=1"]),
    ("evaluate {} --fixed a", LOGS),
    ("evaluate log.csv --model {}", MODELS),
    ("evaluate log.csv --fixed a --figure {}", ["no/such/f.svg", "f.doc"]),
    ("evaluate log.csv {}", ["--fixed=z", "--fixed=a --gamma=7", "--scores=no", "--scores=a --rule=b"]),
    ("decide {} rows.csv --output d.parquet", MODELS),
    ("decide model.npz {} --output d.parquet", [*TABLES, *MATRICES]),
    ("decide model.npz rows.csv --output {}", ["no/such/folder/d.parquet", "folder.parquet", "d.csv"]),
    ("decide model.npz rows.csv --output d.parquet {}", ["--set-size=9", "--id-column=no"]),
    ("learn {} rows.csv answers.csv", MODELS),
    ("learn model.npz {} answers.csv", TABLES),
    ("learn model.npz rows.csv {}", TABLES),
    ("simulate --rounds 10 --data {}", [*odd("npz", "csv", "parquet", "svm"), "pickled.npz", "diggits"]),
    ("simulate --rounds 10 --data data.npz {}", ["--set-size=9", "--gamma=3", "--learner=no", "--log=no/l"]),
    ("run {}", odd("toml")),
    ("run spec.toml --output {}", ["log.csv", "no/such/folder"]),
    ("report {}", ["none", "log.csv", "folder.csv"]),
    ("reproduce {}", ["fig9", "--data=none.npz"]),
    ("serve --features 3 --labels labels.txt --journal {}", ["no/such/j.db", "folder.db", "words.db"]),
    ("serve --features 3 --journal new.db --labels {}", odd("txt")),
    ("serve --journal new.db --model {}", MODELS),
    ("serve --journal new.db {}", ["--labels=labels.txt --port=99999", "--labels=labels.txt --timeout=soon"]),
    ("replay {}", JOURNALS),
    ("export {} --output e.parquet", JOURNALS),
    ("verify {}", JOURNALS),
    ("backup {} copy.db", JOURNALS),
    ("migrate {}", JOURNALS),
    ("erase {} --older 90d", JOURNALS),
    ("traffic {} --data digits --decisions 1", ["http://127.0.0.1:9", "nowhere", "ftp://x"]),
    ("traffic http://127.0.0.1:9 --decisions 1 --data {}", ["none.npz", "latin.csv"]),
    ("change {} pause", ["http://127.0.0.1:9", "nowhere"]),
    ("theory --labels 3 --set-size {}", ["9", "0", "x"]),
    ("data get {}", ["none"]),
]  # fmt: skip


@pytest.mark.parametrize(("way", "files"), WAYS, ids=[way for way, _ in WAYS])
@pytest.mark.slow
def test_one_sentence_each(
    way: str, files: list[str], place: Path, monkeypatch: pytest.MonkeyPatch, run_main: Any
) -> None:
    monkeypatch.chdir(place)
    for file in files:
        arguments = way.format(file).split()
        code, told = run_main(*arguments)
        line = told.strip()
        assert code not in (0, None), f"superarm {' '.join(arguments)} was fine"
        assert "Traceback" not in line, f"superarm {' '.join(arguments)}: {line}"
        if line.startswith("superarm: "):
            assert "\n" not in line, f"superarm {' '.join(arguments)}: {line}"
        else:
            assert "Error" in line, f"superarm {' '.join(arguments)}: {line}"  # the parser's own


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('port = "high"', "port of serve.toml must be a whole number, got 'high'"),
        ("port = 70000", "port of serve.toml must be what --port takes"),
        ("set-size = [3]", "set-size of serve.toml must be a whole number, got [3]"),
        ("set-size = true", "set-size of serve.toml must be a whole number, got True"),
        ("set-size = 3.0", "set-size of serve.toml must be a whole number, got 3.0"),
        ('coverage = "0.9"', "coverage of serve.toml must be a number, got '0.9'"),
        ('trust-clock = "no"', "trust-clock of serve.toml must be true or false, got 'no'"),
        ('journal = ["new.db"]', "journal of serve.toml must be a text or a number, got ['new.db']"),
        ("labels = true", "labels of serve.toml must be a text or a number, got True"),
        ("shadow = [1, true]", "shadow of serve.toml must be a text or a number, got True"),
        ("colour = 1", "colour of serve.toml must be left out: there is no such option"),
        ("[shadow]", "shadow of serve.toml must be"),
        ("port = ", "must be a TOML file"),
    ],
)
def test_a_bad_config_names_the_file_and_the_key(
    line: str, sentence: str, place: Path, monkeypatch: pytest.MonkeyPatch, run_main: Any
) -> None:
    monkeypatch.chdir(place)
    (place / "serve.toml").write_text(line + "\n")
    code, told = run_main("serve", "--config", "serve.toml", "--journal", "new.db")
    assert code == 2
    assert sentence in told
    assert not (place / "new.db").exists()


def test_a_variable_of_no_option_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, run_main: Any
) -> None:
    monkeypatch.setenv("SUPERARM_SERVE_SETSIZE", "3")
    code, told = run_main("serve", "--journal", str(place / "new.db"))
    assert code == 2
    assert "got 'SUPERARM_SERVE_SETSIZE'; did you mean 'SUPERARM_SERVE_SET_SIZE'?" in told
    assert run_main("serve", "--help")[0] == 0
    assert run_main("theory", "--help")[0] == 0  # and of serve alone


def test_an_option_that_may_be_repeated_is_a_word_or_a_list_in_a_config(
    place: Path, monkeypatch: pytest.MonkeyPatch, run_main: Any
) -> None:
    monkeypatch.chdir(place)
    for value in ('"nobody"', '["nobody"]'):
        (place / "serve.toml").write_text(f'shadow = {value}\nlabels = "labels.txt"\nset-size = 1\n')
        code, told = run_main("serve", "--config", "serve.toml", "--journal", "new.db")
        assert code == 2
        assert "nobody" in told
        assert "iterable" not in told


def test_a_folder_as_output_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch, run_main: Any) -> None:
    monkeypatch.chdir(place)
    code, told = run_main("train", "log.csv", "--output", ".")
    assert code == 2
    assert "--output of superarm train must be a file in an existing folder, got the folder ." in told
