"""The command line: what it prints, what it refuses, how quickly it is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from superarm.cli.app import app
from superarm.errors import InvalidInput

ROOT = Path(__file__).parents[2]


def superarm(*arguments: str) -> str:
    """Standard output of a command that must succeed."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_simulate_json_is_one_object_with_the_promised_keys() -> None:
    found = json.loads(
        superarm(
            *("simulate", "--data", "digits", "--learner", "mc-dbf", "--set-size", "4"),
            *("--rounds", "500", "--seeds", "2", "--seed", "3", "--gamma", "0.2", "--json"),
        )
    )
    assert set(found) == {"learner", "data", "set_size", "rounds", "runs", "mean"}
    assert (found["learner"], found["data"], found["set_size"], found["rounds"]) == (
        "mc-dbf",
        "digits",
        4,
        500,
    )
    rates = {"error_rate", "miss_rate", "shown_miss_rate"}
    assert [run["seed"] for run in found["runs"]] == [3, 4]
    assert all(set(run) == {"seed", "rounds_per_second", *rates} for run in found["runs"])
    assert set(found["mean"]) == rates
    for rate in rates:
        assert found["mean"][rate] == pytest.approx(sum(run[rate] for run in found["runs"]) / 2)


def test_simulate_prints_a_table() -> None:
    printed = superarm(
        *("simulate", "--data", "digits", "--learner", "perceptron", "--learner", "set-logit:explore=rank"),
        *("--set-size", "3", "--rounds", "300", "--seeds", "2"),
    )
    assert "perceptron" in printed
    assert "set-logit:explore=rank" in printed
    assert "±" in printed


def test_the_default_learner_is_set_logit() -> None:
    assert "set-logit" in superarm("simulate", "--data", "digits", "--rounds", "200", "--set-size", "2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learner", "perceptron", "--gamma", "0.1"], "--gamma of perceptron must be left out"),
        (["--learner", "nobody"], "learner of superarm must be one of perceptron"),
        (["--learner", "mc-dbf:colour=red"], "colour of MCDBF is not one of its parameters"),
        (["--learner", "mc-dbf:gamma"], "learner of superarm must be name:key=value"),
        (["--learner", "banditron", "--set-size", "2"], "set_size of Banditron must be 1"),
        (["--learner", "mc-dbf", "--set-size", "10"], "set_size of MCDBF must be below n_labels = 10"),
        (["--learner", "pa", "--learner", "pa", "--json"], "--learner of simulate --json must be given once"),
        (["--learner", "nowhere.py:Mine"], "learner of superarm must be an existing file.py:Class"),
    ],
)
def test_simulate_refuses(arguments: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        CliRunner().invoke(
            app, ["simulate", "--data", "digits", "--rounds", "100", *arguments], catch_exceptions=False
        )


def test_a_learner_from_a_file() -> None:
    own = ROOT / "tests" / "own_learner.py"
    name = next(
        line for line in own.read_text().splitlines() if line.startswith("class ") and "Learner" in line
    )
    spec = f"{own}:{name.split()[1].split('(')[0]}"
    printed = superarm("simulate", "--data", "digits", "--learner", spec, "--rounds", "200", "--json")
    assert json.loads(printed)["learner"] == spec


def test_a_learner_from_a_file_leaves_nothing_behind_for_others(tmp_path: Path) -> None:
    """Its types must not be in cache entries that other processes read."""
    own = tmp_path / "fleeting.py"
    own.write_text((ROOT / "tests" / "own_learner.py").read_text(encoding="utf-8"), encoding="utf-8")
    common = ["simulate", "--data", "digits", "--rounds", "100", "--set-size", "2", "--json"]
    for spec in (f"{own}:UpAndDown", "banditron:set_size=1", "mc-dbf"):
        command = [sys.executable, "-m", "superarm", *common, "--learner", spec]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        own.unlink(missing_ok=True)


def test_theory_json() -> None:
    found = json.loads(superarm("theory", "--labels", "10", "--set-size", "3", "--json"))
    assert found["second_moments"]["minimum-variance"][0] < found["second_moments"]["ordered"][0]
    assert "Theorem 6" in superarm("theory", "--labels", "10", "--set-size", "3")


def test_errors_are_one_sentence_and_exit_code_2() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "superarm", "theory", "--labels", "3", "--set-size", "3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.strip() == "superarm: set_size of theory must be at least 1 and below labels = 3, got 3"


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    heavy = ("numba", "sklearn", "scipy", "altair", "polars", "msgspec", "dask", "keras", "numpy")
    for statement in ("import superarm", "import superarm.cli.app"):
        code = f"{statement}; import sys; print([m for m in {heavy} if m in sys.modules])"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "[]", statement


def test_every_command_has_an_example_and_the_reference_is_current() -> None:
    from superarm.cli.reference import markdown

    text = markdown()
    sections = text.split("\n## ")[1:]
    assert len(sections) >= 15
    assert [s.splitlines()[0] for s in sections if "Example: **superarm " not in s] == []
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == text, "run: python -m superarm.cli.reference"
