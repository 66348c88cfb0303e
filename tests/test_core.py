"""The light core alone: what works without any extra, and the command that each missing extra asks for."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from superarm._extras import EXTRAS, require_extra
from superarm.errors import MissingExtra

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "superarm"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# what their extra does without, if it must
SPARE = {"uvloop", "jax"}
IMPORTED_AS = {
    "pillow": "PIL",
    "prometheus-client": "prometheus_client",
    "vl-convert-python": "vl_convert",
    "scikit-learn": "sklearn",
}


def core_packages() -> set[str]:
    """The names of all distributions that `pip install superarm` brings."""
    waiting, found = [Requirement(line) for line in PROJECT["dependencies"]], set()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found.add(name)
            waiting += map(Requirement, requires(one.name) or ())
    return found


def blocked() -> list[str]:
    """Every package that is installed here and is not in the core."""
    core = core_packages() | {"superarm"}
    owners = {name: set(map(canonicalize_name, who)) for name, who in packages_distributions().items()}
    return [name for name, who in owners.items() if not core & who]


def alone(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the core alone."""
    prelude = f"import sys; sys.modules |= dict.fromkeys({blocked()!r})\n"
    whole = [sys.executable, "-c", prelude + code, *arguments]
    return subprocess.run(whole, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return alone("from superarm.cli import main; main()", folder, *arguments)


def test_what_is_blocked_is_what_the_core_does_not_bring() -> None:
    names = blocked()
    assert {"polars", "scipy", "sklearn", "altair", "joblib"} <= set(names)
    assert not {"numpy", "rich", "typer", "superarm"} & set(names)


def test_a_learner_decides_learns_and_is_kept(tmp_path: Path) -> None:
    code = """
import superarm as sa
assert sa.__all__
learner = sa.SetLogit(labels=["ads", "billing", "login"], n_features=3, set_size=2, seed=0)
learner.update(learner.decide([0.2, 0.0, 0.9]), hit=True)
learner.save("model.npz")
again = sa.load("model.npz")
print(again.decide([0.2, 0.0, 0.9]).labels == learner.decide([0.2, 0.0, 0.9]).labels)
from superarm.logs import Log, Writer
with Writer("log.jsonl") as log:
    log.add(learner.decide([0.1, 0.2, 0.3]), hit=True)
print(len(list(Log("log.jsonl"))))
"""
    done = alone(code, tmp_path)
    assert done.stderr == ""
    assert done.stdout == "True\n1\n"


def test_the_embedded_data_are_simulated(tmp_path: Path) -> None:
    code = """
import superarm as sa
for name in ("digits", "synsep", "synnonsep"):
    stream = sa.streams.open_data(name)
    learner = sa.make("perceptron", n_labels=stream.n_labels, n_features=stream.n_features, set_size=2)
    print(name, sa.simulate(learner, stream, 500).rounds[-1])
"""
    done = alone(code, tmp_path)
    assert done.stdout == "digits 500\nsynsep 500\nsynnonsep 500\n", done.stderr
    table = command(tmp_path, "simulate", "--data", "digits", "--rounds", "200", "--learner", "perceptron")
    assert "rounds/s" in table.stdout, table.stderr


def test_every_command_has_its_help(tmp_path: Path) -> None:
    code = """
import typer.main
from typer.testing import CliRunner
from superarm.cli.app import app
root = typer.main.get_command(app)
lines = [[], *([name] for name in root.commands)]
lines += [[name, inner] for name, one in root.commands.items() for inner in getattr(one, "commands", ())]
for line in lines:
    result = CliRunner().invoke(app, [*line, "--help"], catch_exceptions=False)
    assert result.exit_code == 0, line
    assert "Example: " in result.stdout, line
print(len(lines))
"""
    done = alone(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


@pytest.mark.parametrize("arguments", [("theory", "--labels", "5", "--set-size", "2"), ("data", "list")])
def test_commands_that_need_nothing_more(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = command(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


MISSING = [
    ("experiments", ("demo",)),
    ("experiments", ("run", "grid.toml")),
    ("experiments", ("reproduce", "fig2", "--quick")),
    ("plots", ("report", ".")),
    ("logs", ("simulate", "--data", "table.parquet")),
    ("logs", ("simulate", "--data", "digits", "--rounds", "10", "--log", "log.parquet")),
    ("logs", ("decide", "model.npz", "table.csv")),
    ("logs", ("bench",)),
    ("sklearn", ("simulate", "--data", "rows.svm")),
    ("data", ("data", "get", "mnist")),
    ("features", ("data", "features", "images.npz", "--weights", "weights.h5")),
    ("serve", ("serve", "--journal", "events.db")),
    ("serve", ("play", "--no-browser")),
]


EACH = """
import contextlib, io, json, sys
from superarm.cli import main
told = []
for line in json.loads(sys.argv[1]):
    sys.argv[1:] = line
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as ended:
            told.append([ended.code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""


@pytest.mark.slow
def test_a_missing_extra_is_told_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    monkeypatch.setenv("SUPERARM_DATA", str(tmp_path / "data"))
    (tmp_path / "grid.toml").write_text('rounds = 10\ndata = ["digits"]\nlearners = ["perceptron"]')
    (tmp_path / "table.csv").write_text("x,label\n0.5,a\n0.7,b\n")
    (tmp_path / "table.parquet").write_bytes(b"")
    (tmp_path / "rows.svm").write_text("0 1:0.5\n1 2:0.5\n")
    (tmp_path / "weights.h5").write_bytes(b"")
    np.savez(tmp_path / "images.npz", X=np.zeros((2, 8, 8), np.uint8), y=np.array([0, 1]))
    done = alone(EACH, tmp_path, json.dumps([line for _, line in MISSING]))
    assert done.returncode == 0, done.stderr
    for (extra, line), (code, out, told) in zip(MISSING, json.loads(done.stdout), strict=True):
        assert (code, out) == (2, ""), (line, told)
        assert len(told.splitlines()) == 1, (line, told)
        assert told.startswith("superarm: the extra for "), line
        assert told.endswith(f'pip install "superarm[{extra}]"\n'), line


LEARNER = "sa.Perceptron(n_labels=10, n_features=64, set_size=2)"


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ("sklearn", "import superarm.sklearn"),
        ("serve", "from superarm.service import Service"),
        ("logs", f"import superarm as sa; sa.simulate({LEARNER}, 'digits', 9).to_frame()"),
        ("logs", f"import superarm as sa; {LEARNER}.decide_many([[0.0] * 64]).to_frame()"),
        ("logs", "from superarm._intervals import student_margin; student_margin(0.1, 9)"),
        ("logs", "import superarm.experiments"),
    ],
)
def test_the_library_raises_the_same_sentence(extra: str, code: str, tmp_path: Path) -> None:
    done = alone(code, tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("superarm.errors.MissingExtra: the extra for ")
    assert last.endswith(f'pip install "superarm[{extra}]"')


@pytest.mark.parametrize("journal", [None, "l.db"])
def test_labelling_without_its_page_needs_no_server(journal: str | None, tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules |= dict.fromkeys(("uvicorn", "httptools", "prometheus_client", "PIL"))
import superarm as sa
job = sa.Labelling([{{"n": 1.0}}, {{"n": 2.0}}], labels=["a", "b"], target=1.0, journal={journal!r})
job.answer(job.ask(), label="a")
print(job.progress())
"""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "1 of 2 labelled, 1 clicks\n", done.stderr


PARTS = [(extra, package) for extra, (_, packages) in EXTRAS.items() for package in packages]


@pytest.mark.parametrize(("extra", "package"), PARTS)
def test_each_package_of_an_extra_is_looked_for(
    extra: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else name)
    with pytest.raises(MissingExtra, match=rf'\(no {package}\): pip install "superarm\[{extra}\]"'):
        require_extra(extra)


def test_the_digits_are_those_of_scikit_learn() -> None:
    import numpy as np
    from sklearn.datasets import load_digits

    from superarm.streams import open_data

    X, y = load_digits(return_X_y=True)
    ours = open_data("digits")
    assert np.array_equal(ours.rows.dense, X)
    assert np.array_equal(ours.y, y)


def packages_of(extra: str) -> set[str]:
    """What an extra brings by pyproject.toml, under the names that are imported."""
    found = set()
    for one in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if one.name == "superarm":
            found |= {name for inner in one.extras for name in packages_of(inner)}
        else:
            found.add(IMPORTED_AS.get(one.name, one.name))
    return found - SPARE


def test_extras_are_the_same_in_the_code_and_in_the_metadata() -> None:
    assert set(EXTRAS) == set(PROJECT["optional-dependencies"]) - {"all", "dev"}
    for extra, (_, packages) in EXTRAS.items():
        assert set(packages) == packages_of(extra), extra
    assert packages_of("all") == {name for _, packages in EXTRAS.values() for name in packages}


OPTIONAL = {name for _, packages in EXTRAS.values() for name in packages}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_whoever_imports_an_extra_asks_for_it_first(path: Path) -> None:
    """In the file itself, or in the `__init__` of its package."""
    text = path.read_text(encoding="utf-8")
    typing_only = [
        inner
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    ]
    lines = {node.lineno for node in typing_only if isinstance(node, ast.Import | ast.ImportFrom)}
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import) and node.lineno not in lines:
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.lineno not in lines:
            found.add(node.module.split(".")[0])
    doors = [door.read_text(encoding="utf-8") for door in (path, path.parent / "__init__.py")]
    calls = [call for door in doors for call in re.findall(r'\brequire_extra\("(\w+)"((?:, "\w+")*)\)', door)]
    asked = {name for extra, named in calls for name in re.findall(r"\w+", named) or EXTRAS[extra][1]}
    assert found & OPTIONAL <= asked


def test_looking_at_the_public_names_imports_nothing(tmp_path: Path) -> None:
    code = "import superarm, sys; dir(superarm); print([m for m in sys.modules if m.startswith('superarm.')])"
    assert alone(code, tmp_path).stdout.strip() == "[]"


def test_every_learner_is_a_public_name() -> None:
    import superarm
    from superarm import learners

    offered = {name for name, value in vars(learners).items() if callable(value) and not name.startswith("_")}
    assert offered <= set(dir(superarm))
    assert all(getattr(superarm, name) is getattr(learners, name) for name in offered)
    assert superarm.logs.Log.__name__ == "Log"
    with pytest.raises(AttributeError, match="module 'superarm' has no attribute 'Nobody'"):
        superarm.Nobody  # noqa: B018
