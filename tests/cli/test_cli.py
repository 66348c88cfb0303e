"""The command line: what it prints, what it refuses, how quickly it is there."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click.testing
import pytest
import typer.main
from typer.testing import CliRunner

import superarm as sa
from superarm.cli.app import app
from superarm.errors import InvalidInput, MissingExtra

ROOT = Path(__file__).parents[2]
RunMain = Callable[..., tuple[Any, str]]


def superarm(*arguments: str) -> str:
    """Standard output of a command that must succeed."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "superarm", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=120)


def test_simulate_json_is_one_object_with_the_promised_keys() -> None:
    found = json.loads(
        superarm(
            *("simulate", "--data", "digits", "--learner", "mc-dbf", "--set-size", "4"),
            *("--rounds", "500", "--seeds", "2", "--seed", "3", "--gamma", "0.2", "--json"),
        )
    )
    assert set(found) == {"learner", "data", "set_size", "scaling", "rounds", "runs", "mean"}
    assert [found[key] for key in ("learner", "data", "set_size", "rounds")] == ["mc-dbf", "digits", 4, 500]
    rates = {"error_rate", "miss_rate", "shown_miss_rate", "coverage", "mean_size"}
    assert [run["seed"] for run in found["runs"]] == [3, 4]
    assert all(set(run) == {"seed", "rounds_per_second", *rates} for run in found["runs"])
    assert set(found["mean"]) == rates
    for rate in rates:
        assert found["mean"][rate] == pytest.approx(sum(run[rate] for run in found["runs"]) / 2)


@pytest.mark.smoke
def test_simulate_prints_a_table() -> None:
    printed = superarm(
        *("simulate", "--data", "digits", "--learner", "perceptron", "--learner", "set-logit:explore=rank"),
        *("--set-size", "3", "--rounds", "300", "--seeds", "2"),
    )
    assert "perceptron" in printed
    assert "set-logit:explore=rank" in printed
    assert "±" in printed


def test_simulate_scales_rows_alike_for_all_learners_and_says_how() -> None:
    for arguments, wanted in (
        ((), ["standard", "standard", "unit"]),
        (("--scaling", "unit"), ["unit", "unit", "unit"]),
        (("--scaling", "own"), ["unit", "standard", "unit"]),
    ):
        specs = ("--learner", "perceptron", "--learner", "set-logit", "--learner", "softmax:scaling=unit")
        common = ("simulate", "--data", "digits", "--rounds", "100", *specs, *arguments)
        results = json.loads(superarm(*common, "--json"))["results"]
        assert [one["scaling"] for one in results] == wanted
        assert "scaling" in superarm(*common)


COMPARED = (
    *("simulate", "--data", "digits", "--rounds", "200", "--gamma", "0.2", "--set-size", "3"),
    *("--learner", "set-logit", "--learner", "mc-dbf", "--learner", "banditron", "--learner", "mc-slp"),
)


SIZES = {"set-logit": 3, "mc-dbf": 3, "banditron": 1, "mc-slp": 3}


def test_each_of_several_learners_gets_what_it_can_use() -> None:
    result = CliRunner().invoke(app, [*COMPARED, "--json"], catch_exceptions=False)
    found = json.loads(result.stdout)
    assert set(found) == {"results"}
    by_name = {one["learner"]: one for one in found["results"]}
    assert list(by_name) == ["set-logit", "mc-dbf", "banditron", "mc-slp"]
    assert {name: one["set_size"] for name, one in by_name.items()} == SIZES
    alone = superarm(*COMPARED[:9], "--learner", "mc-dbf", "--json")
    assert by_name["mc-dbf"]["mean"] == json.loads(alone)["mean"]  # gamma reached it
    told = result.stderr.splitlines()
    assert "banditron: m = 1, its theory knows no larger sets" in told
    assert "mc-slp: runs without --gamma" in told
    assert len(told) == 3


def test_the_table_says_m_for_each_learner() -> None:
    lines = superarm(*COMPARED).splitlines()
    sizes = {line.split()[0]: line.split()[1] for line in lines if line.split()[0] in COMPARED}
    assert sizes == {name: str(m) for name, m in SIZES.items()}


def test_fewer_rounds_than_the_warm_up_of_a_promise() -> None:
    arguments = ("simulate", "--data", "digits", "--rounds", "20", "--learner", "set-logit:coverage=0.95")
    table = superarm(*arguments)
    assert "no round after the warm-up" in table
    assert "nan" not in table
    mean = json.loads(superarm(*arguments, "--json"))["mean"]
    assert mean["coverage"] is mean["mean_size"] is None


def test_the_first_line_tells_how_often_rows_are_visited() -> None:
    often, once = (
        superarm("simulate", "--data", "digits", "--rounds", rounds) for rounds in ("5391", "1797")
    )
    title = "digits: 1,797 rows, visited 3.0 times in 5,391 rounds, 10 labels, 1 seed(s)"
    assert often.splitlines()[0].rstrip() == title
    assert once.splitlines()[0].rstrip() == "digits: 1,797 rounds, 10 labels, 1 seed(s)"
    endless = superarm("simulate", "--data", "synsep", "--rounds", "50")
    assert endless.splitlines()[0].rstrip() == "synsep: 50 rounds, 9 labels, 1 seed(s)"


def test_the_default_learner_is_set_logit() -> None:
    assert "set-logit" in superarm("simulate", "--data", "digits", "--rounds", "200", "--set-size", "2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learner", "perceptron", "--gamma", "0.1"], "gamma of Perceptron must be one of its parameters"),
        (["--learner", "nobody"], "learner of superarm must be one of "),
        (["--learner", "mc-bdf"], "got 'mc-bdf'; did you mean 'mc-dbf'"),
        (["--learner", "mc-dbf:colour=red"], "colour of MCDBF must be one of its parameters"),
        (["--learner", "mc-dbf:gama=0.1"], "got 'gama'; did you mean 'gamma'"),
        (["--learner", "mc-dbf:gamma"], "learner of superarm must be name:key=value"),
        (["--learner", "banditron", "--set-size", "2"], "set_size of Banditron must be 1"),
        (["--learner", "mc-dbf", "--set-size", "10"], "set_size of MCDBF must be below n_labels = 10"),
        (["--learner", "nowhere.py:Mine"], "no such file: nowhere.py"),
        (["--scaling", "none"], "--scaling of simulate must be one of standard, unit, own, got 'none'"),
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


def test_theory_json() -> None:
    found = json.loads(superarm("theory", "--labels", "10", "--set-size", "3", "--json"))
    assert found["second_moments"]["minimum-variance"][0] < found["second_moments"]["ordered"][0]
    assert found["complexity"] == pytest.approx(4.05)  # with less no W* has R_T = 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--labels 10 --set-size 3 --rounds 9000000", "… which says nothing"),
        ("--labels 10 --set-size 3 --complexity 2", "no W* of this D has R_T = 0; that takes 4.05"),
        ("--labels 10 --set-size 1", "… which says nothing: with m = 1 no W* has R_T = 0"),
        ("--labels 10 --set-size 3", "minimum-variance (ρ = 0.9047)  "),
        ("--labels 100000 --set-size 20", "\nordered  "),
        ("--labels 100000 --set-size 20", "\nbound of Lemma 5 (ordered)  "),
    ],
)
def test_theory_says_what_its_numbers_are_about(arguments: str, words: str) -> None:
    says_more = "9000000" not in arguments  # there the bound is below the rounds
    assert (words in superarm("theory", *arguments.split())) == says_more


def test_errors_are_one_sentence_and_exit_code_2() -> None:
    done = command("theory", "--labels", "3", "--set-size", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.strip() == "superarm: set_size of theory must be at least 1 and below labels = 3, got 3"
    )


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    heavy = ("sklearn", "scipy", "altair", "polars", "msgspec", "dask", "keras", "numpy")
    for statement in ("import superarm", "import superarm.cli.app"):
        code = f"{statement}; import sys; print([m for m in {heavy} if m in sys.modules])"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "[]", statement


def test_the_version_is_that_of_the_package_and_of_the_citation() -> None:
    from superarm import __version__

    assert superarm("--version") == f"superarm {__version__}\n"
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_reference_is_current() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "cli_reference.py"))["markdown"]()
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == text, "run: python docs/cli_reference.py"


# ---------------------------------------------------------------- ends that are not errors of ours


LATIN = b"\xe9t\xe9\n\xe0 la plage\n"  # not UTF-8


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--data", "folder"),
        ("simulate", "--data", "latin.csv"),
        ("simulate", "--data", "digits", "--rounds", "10", "--learner", "latin.py:Mine"),
        ("run", "latin.toml"),
        ("run", "good.toml", "--output", "latin.csv"),
        ("report", "none"),
        ("train", "latin.jsonl"),
        ("train", "log.csv", "--labels", "folder"),
        ("train", "log.csv", "--features", "latin.npz"),
        ("evaluate", "log.csv", "--model", "latin.csv"),
        ("data", "features", "none.npz"),
        ("demo", "--output", "latin.csv", "--rounds", "100", "--seeds", "1"),
    ],
    ids=" ".join,
)
def test_files_that_cannot_be_read_or_written_are_told_in_one_sentence(
    arguments: tuple[str, ...], files: Path, monkeypatch: pytest.MonkeyPatch, run_main: RunMain
) -> None:
    """More of them: tests/cli/test_odd_input.py, which is slow."""
    monkeypatch.chdir(files)
    code, told = run_main(*arguments)
    assert code == 2, told
    (line,) = filter(None, told.splitlines())
    assert line.startswith("superarm: "), told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "data features x --model",
            "option of superarm data features must be one that its --help lists, got '--model'",
        ),
        (
            "simulate --dta digits",
            "option of superarm simulate must .* got '--dta'; did you mean '--data'\\?",
        ),
        ("--foo", "option of superarm must be one that its --help lists, got '--foo'"),
        ("simulate --rounds x", "invalid value for '--rounds': .* \\(superarm simulate --help\\)"),
        ("simulate --data", "option '--data' requires an argument"),
        ("train", "missing argument 'LOG...' \\(superarm train --help\\)"),
        ("tran", "no such command 'tran'.*"),
    ],
)
def test_wrong_arguments_are_told_in_one_sentence(arguments: str, sentence: str, run_main: RunMain) -> None:
    code, told = run_main(*arguments.split())
    assert code == 2
    assert re.fullmatch(f"superarm: {sentence}\n", told)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files that are something else than their names say, and a folder."""
    (tmp_path / "folder").mkdir()
    for suffix in ("csv", "npz", "parquet", "svm", "toml", "jsonl", "py"):
        (tmp_path / f"latin.{suffix}").write_bytes(LATIN)
    (tmp_path / "good.toml").write_text('rounds = 10\ndata = ["digits"]\nlearners = ["perceptron"]')
    rows = "".join(f"{i % 2},{'ab'[i % 2]};c,{i % 2}\n" for i in range(60))
    (tmp_path / "log.csv").write_text("x0,labels,hit\n" + rows)
    return tmp_path


def test_data_that_are_missing_are_told_with_what_to_do(tmp_path: Path) -> None:
    done = command("data", "get", "mnist", "--from", str(tmp_path))
    first, then, *files, put, resumed = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert first == f"superarm: {tmp_path}/mnist/train-images-idx3-ubyte.gz is not there."
    assert then == "Without a network, get on another machine"
    assert len(files) == 4
    assert all(file.startswith("  https://") for file in files)
    assert "superarm data get mnist --from DIR" in put
    assert resumed == "A download that was broken off goes on where it stopped."


LONG = {
    "bench": ("bench",),
    "simulate": ("simulate", "--data", "synsep", "--rounds", "2000000000"),
    "run": ("run", "long.toml", "--jobs", "2"),
}


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_quietly(name: str, tmp_path: Path) -> None:
    """A terminal's Ctrl-C reaches the whole group: no process of it may print a traceback."""
    (tmp_path / "long.toml").write_text(
        'rounds = 200_000_000\nseeds = 8\ndata = ["synsep"]\nlearners = ["perceptron"]'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "superarm", *LONG[name]],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    memory = Path(f"/proc/{process.pid}/maps")
    while memory.exists() and process.poll() is None and "superarm/native" not in memory.read_text():
        time.sleep(0.05)  # the interpreter itself must be up
    time.sleep(1.0)  # somewhere in the middle: importing or running, as the machine likes
    assert process.poll() is None, process.communicate()
    try:
        os.killpg(process.pid, signal.SIGINT)
        out, told = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    # where the signal fell into an eval or exec, Python passes it on at its end: a shell sees 130 both ways
    assert process.returncode in (130, -signal.SIGINT), told
    assert "Traceback" not in out + told
    assert "Error" not in out + told


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--data", "digits", "--rounds", "10", "--log", "there.jsonl"),
        ("train", "log.csv", "--output", "there.jsonl"),
        ("decide", "model.npz", "log.csv", "--output", "there.jsonl"),
        ("learn", "model.npz", "decisions.parquet", "log.csv", "--log", "there.jsonl"),
        ("replay", "events.db", "--output", "there.jsonl"),
        ("export", "events.db", "--output", "there.jsonl"),
        ("evaluate", "log.csv", "--fixed", "a", "--uniform", "--figure", "there.jsonl"),
        ("data", "features", "none.npz", "--output", "there.jsonl"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_command_writes_over_a_file_without_force_nor_over_a_journal_with_it(
    arguments: tuple[str, ...], files: Path, monkeypatch: pytest.MonkeyPatch, run_main: RunMain
) -> None:
    monkeypatch.chdir(files)
    there = files / "there.jsonl"
    for content, extra, words in (
        (b"mine", (), "must be a new file, or given with --force, got 'there.jsonl'"),
        (b"SQLite format 3\0 and more", ("--force",), "nothing overwrites these"),
    ):
        there.write_bytes(content)
        code, told = run_main(*arguments, *extra)
        assert code == 2
        assert words in told
        assert there.read_bytes() == content


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--data", "digits", "--log", "none/log.parquet"),
        ("train", "none.csv", "--output", "none/model.npz"),
        ("evaluate", "none.csv", "--fixed", "a", "--figure", "none/figure.svg"),
        ("decide", "none.npz", "none.csv", "--output", "none/decisions.parquet"),
        ("learn", "none.npz", "none.parquet", "none.csv", "--log", "none/log.parquet"),
        ("replay", "none.db", "--output", "none/model.npz"),
        ("export", "none.db", "--output", "none/log.parquet"),
        ("data", "features", "none.npz", "--output", "none/features.npz"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_missing_folder_is_told_before_anything_is_read(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_main: RunMain
) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = run_main(*arguments)
    assert code == 2
    wanted = f"{arguments[-2]} of superarm .* must be a file in an existing folder, got '{arguments[-1]}'\n"
    assert re.fullmatch(f"superarm: {wanted}", told)
    assert not list(tmp_path.iterdir())


def test_an_option_given_twice_is_refused(tmp_path: Path) -> None:
    for line, option in (
        (["train", "log.csv", "--leave-out", "a", "--leave-out=b"], "--leave-out of superarm train"),
        (["data", "features", "mnist", "--size", "8", "--size", "9"], "--size of superarm data features"),
    ):
        with pytest.raises(InvalidInput, match=f"{option} must be given once, got 2 times"):
            click.testing.CliRunner().invoke(
                typer.main.get_command(app), line, prog_name="superarm", catch_exceptions=False
            )


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    table = tmp_path / "rows.parquet"
    table.write_bytes(b"precious")
    for line in (
        ["decide", "model.npz", str(table), "--output", str(table), "--force"],
        ["train", str(table), "--output", str(table), "--force"],
    ):
        with pytest.raises(InvalidInput, match="must be another file than those that are read"):
            CliRunner().invoke(app, line, catch_exceptions=False)
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b,kind\n" + "1,2,x\n3,4,y\n" * 20, encoding="utf-8")
    line = ["simulate", "--data", str(rows), "--label", "kind", "--log", str(rows), "--force"]
    with pytest.raises(InvalidInput, match="must be another file than those that are read"):
        CliRunner().invoke(app, line, catch_exceptions=False)
    assert rows.read_text(encoding="utf-8").startswith("a,b,kind")


def test_warnings_are_sentences(tmp_path: Path) -> None:
    log, rows = tmp_path / "log.csv", tmp_path / "rows.csv"
    lines = [f"{20 + i * 7 % 60},{('x;y', 'y;z', 'x;z')[i % 3]},{i % 2}\n" for i in range(60)]
    log.write_text("age,labels,hit\n" + "".join(lines), encoding="utf-8")
    superarm("train", str(log), "--output", str(tmp_path / "m.npz"))
    rows.write_text("id,age\n1,twenty\n", encoding="utf-8")
    done = command("decide", str(tmp_path / "m.npz"), str(rows), "--output", str(tmp_path / "d.parquet"))
    assert "WARNING: " in done.stderr, done.stderr
    assert ".py:" not in done.stderr


def test_declared_columns_are_told_as_such(tmp_path: Path) -> None:
    """Not with what the table was like by which they were found."""
    rows, declared = tmp_path / "rows.csv", tmp_path / "c.columns.json"
    rows.write_text(
        "age,kind\n" + "".join(f"{i * 7 % 60},{'xy'[i % 2]}\n" for i in range(40)), encoding="utf-8"
    )
    rows.with_name("more.csv").write_text(
        "age,site,kind\n" + "".join(f"{i * 7 % 60},r{i % 3},{'xy'[i % 2]}\n" for i in range(90)),
        encoding="utf-8",
    )
    sa.Columns.infer(rows.with_name("more.csv"), kinds={"kind": "left out", "site": "left out"}).write(
        declared
    )
    told = CliRunner().invoke(
        app,
        ["simulate", "--data", str(rows), "--label", "kind", "--rounds", "40", "--columns", str(declared)],
        catch_exceptions=False,
    )
    assert f"features: age (numbers) (as {declared} says)" in " ".join(told.output.split())
    assert "left out" not in told.output


def test_simulate_without_scipy_has_means_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(extra: str, *needed: str) -> None:
        raise MissingExtra("no scipy")

    monkeypatch.setattr("superarm.comparison.require_extra", missing)
    printed = superarm(
        *("simulate", "--data", "digits", "--learner", "perceptron", "--rounds", "100", "--seeds", "2")
    )
    assert "±" not in printed
    assert "2 seed(s)" in printed
