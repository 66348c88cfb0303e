"""Runs that are stored, resumed, killed, broken: nothing finished is lost, and results stay the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest
from lab_kit import results, small_data, small_spec, write_spec
from typer.testing import CliRunner

import superarm as sa
from superarm.cli.app import app
from superarm.errors import InvalidInput
from superarm.experiments import Store, best_gammas, read_spec, run
from superarm.report import write_report
from superarm.streams import open_data

LEARNERS = Path(__file__).parents[1] / "lab_learners.py"
RUN = (sys.executable, "-m", "superarm", "run", "--jobs", "2")


def superarm(line):
    return CliRunner().invoke(app, line.split())


def wait_for_a_result(process, folder):
    deadline = time.monotonic() + 120
    while not list(folder.glob("*.json")):
        assert time.monotonic() < deadline, "no run finished in two minutes"
        assert process.poll() is None, "it ended before anything was finished"
        time.sleep(0.02)


def own_learner(tmp_path, name, seeds=4):
    (tmp_path / "own.py").write_text(LEARNERS.read_text())
    small_data(tmp_path)
    text = f"""
rounds = 400
seeds = {seeds}
data = ["mine.npz"]
learners = ["own.py:{name}"]
"""
    return write_spec(tmp_path, text)


def test_the_store_has_what_simulate_gives(tmp_path):
    store = Store(tmp_path / "s")
    summary = run(read_spec(small_spec(tmp_path)), store)
    assert (summary.runs, summary.executed, summary.stored, summary.failures) == (15, 15, 0, ())
    runs, curves = store.frames("grid")
    assert len(runs) == 15
    row = runs.filter(learner="mc-dbf", set_size=4, seed=2)
    learner = sa.MCDBF(n_labels=10, n_features=64, set_size=4, gamma=0.1, seed=2)
    trace = sa.simulate(learner, open_data("digits"), 2000)
    assert row["error_rate"].item() == trace.error_rate
    assert row["shown_miss_rate"].item() == trace.shown_miss_rate
    curve = curves.filter(learner="mc-dbf", set_size=4, seed=2)
    assert curve["miss_rate"].to_list() == trace.to_frame()["miss_rate"].to_list()
    assert {"version_numpy", "version_superarm", "cpu", "cores", "params", "seconds"} <= set(runs.columns)


def test_nothing_runs_twice_and_any_number_of_processes_gives_the_same(tmp_path):
    spec = read_spec(small_spec(tmp_path))
    one, two = Store(tmp_path / "1"), Store(tmp_path / "2")
    seen = []
    run(spec, one, jobs=1)
    run(spec, two, jobs=2, progress=seen.append)
    assert results(one) == results(two)
    assert seen == [2000] * 15
    again = run(spec, two, jobs=2)
    assert (again.executed, again.stored) == (0, 15)


def test_a_bigger_grid_runs_only_what_is_new(tmp_path):
    store = Store(tmp_path / "s")
    run(read_spec(small_spec(tmp_path)), store)
    narrow = small_spec(tmp_path)
    wider = narrow.read_text().replace('"banditron"', '{ use = "banditron", seeds = 5 }')
    assert run(read_spec(write_spec(tmp_path, wider)), store).executed == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_that_fails_is_recorded_and_stops_nobody(tmp_path, jobs):
    spec = read_spec(own_learner(tmp_path, "Breaks"))
    store = Store(tmp_path / "s")
    summary = run(spec, store, jobs=jobs)
    assert (summary.executed, len(summary.failures), len(results(store))) == (4, 1, 3)
    failure = summary.failures[0]
    assert failure.error == "RuntimeError: seed 1 breaks"
    assert "lab_learners" in failure.traceback or "own.py" in failure.traceback
    assert len(store.failures([failure.run.key])) == 1
    assert run(spec, store, jobs=jobs).executed == 1  # a failure is not kept as a result


def test_a_process_that_dies_takes_only_its_cell_with_it(tmp_path):
    store = Store(tmp_path / "s")
    summary = run(read_spec(own_learner(tmp_path, "Dies")), store, jobs=2)
    assert [f.run.seed for f in summary.failures] == [1]
    assert "its process died" in summary.failures[0].error
    assert len(results(store)) == 3


@pytest.mark.parametrize("how", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGINT])
def test_killed_and_resumed_equals_never_killed(tmp_path, monkeypatch, how):
    path = own_learner(tmp_path, "Slow")
    command = [*RUN, str(path), "--no-report", "--output", str(tmp_path / "killed")]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    finished = tmp_path / "killed" / "runs"
    wait_for_a_result(process, finished)
    os.killpg(process.pid, how)  # the group that this test has started, as a terminal's Ctrl-C does
    _, told = process.communicate(timeout=60)
    if how is signal.SIGINT:
        assert process.returncode in (130, -signal.SIGINT)  # 130 for a shell, both
        assert "the same command goes on" in told
    kept = len(list(finished.glob("*.json")))
    assert 1 <= kept < 4
    monkeypatch.setenv("LAB_HURRY", "1")  # from here on nobody has to catch it in the middle
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert f"4 runs, {kept} of them from before, 0 failed" in again.stderr
    run(read_spec(path), Store(tmp_path / "whole"))
    assert results(Store(tmp_path / "killed")) == results(Store(tmp_path / "whole"))
    assert not list(finished.glob(".*.part")) or kept  # half a file is never taken for a result


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(tmp_path):
    path = own_learner(tmp_path, "Slow", seeds=40)
    process = subprocess.Popen(
        [*RUN, str(path), "--output", str(tmp_path / "s")], start_new_session=True, stderr=subprocess.DEVNULL
    )
    wait_for_a_result(process, tmp_path / "s" / "runs")
    process.kill()  # it alone, not its group
    process.wait()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("its processes went on without it")


def test_best_gammas_are_taken_from_an_experiment(tmp_path):
    store = Store(tmp_path / "s")
    sweep = """
rounds = 2000
seeds = 2
set_sizes = [2, 4]
gammas = [0.02, 0.5]
data = ["digits"]
learners = ["mc-dbf"]
"""
    run(read_spec(write_spec(tmp_path, sweep, "sweep")), store)
    best = best_gammas(store, "sweep")
    runs, _ = store.frames("sweep")
    for m in (2, 4):
        means = {g: runs.filter(gamma=g, set_size=m)["error_rate"].mean() for g in (0.02, 0.5)}
        assert best["digits", "mc-dbf", m] == min(means, key=means.get)
    with pytest.raises(InvalidInput, match=r"experiment of .* must be one of \['sweep'\], got 'none'"):
        best_gammas(store, "none")
    user = sweep.replace("[0.02, 0.5]", '"best"\nbest_from = "sweep"')
    assert run(read_spec(write_spec(tmp_path, user, "user")), store).executed == 0  # the very same cells
    user = user.replace("[2, 4]", "[3]")
    with pytest.raises(InvalidInput, match="sweep has no results for mc-dbf with m = 3 on digits"):
        run(read_spec(write_spec(tmp_path, user, "user")), store)


@pytest.mark.smoke
def test_the_command(tmp_path):
    out = tmp_path / "out"
    result = superarm(f"run {small_spec(tmp_path)} --output {out} --jobs 1")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip().endswith("index.html")
    runs = polars.read_parquet(out / "runs.parquet")
    assert len(runs) == 15
    assert len(polars.read_parquet(out / "curves.parquet")) > 15 * 50


def test_the_command_fails_at_the_end_if_a_cell_failed(tmp_path):
    path = own_learner(tmp_path, "Breaks")
    result = superarm(f"run {path} --output {tmp_path / 'out'} --jobs 1 --no-report")
    assert result.exit_code == 1
    assert "seed 1 on mine: RuntimeError: seed 1 breaks" in result.stderr
    assert len(list((tmp_path / "out" / "runs").glob("*.json"))) == 3


def test_engines_that_are_refused(tmp_path):
    spec = read_spec(small_spec(tmp_path))
    with pytest.raises(InvalidInput, match="engine of run must be local or dask, got 'cloud'"):
        run(spec, Store(tmp_path / "s"), engine="cloud")
    with pytest.raises(InvalidInput, match="address of engine dask must be a scheduler's"):
        run(spec, Store(tmp_path / "s"), engine="dask")


def test_a_broken_result_file_is_named(tmp_path):
    store = Store(tmp_path / "s")
    run(read_spec(small_spec(tmp_path)), store)
    (tmp_path / "s" / "experiments" / "grid.json").write_text("{")
    with pytest.raises(
        InvalidInput, match=r"content of .*grid.json must be JSON.*delete the file, and run again"
    ):
        store.experiment("grid")


def test_a_result_that_was_cut_off_is_named_and_may_be_deleted(tmp_path):
    spec, store = read_spec(small_spec(tmp_path)), Store(tmp_path / "s")
    run(spec, store)
    file = sorted((tmp_path / "s" / "runs").glob("*.json"))[0]
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(InvalidInput, match=rf"content of .*{file.name} must be JSON.*delete the file"):
        store.frames("grid")
    file.unlink()
    assert run(spec, store).stored == len(spec.runs()) - 1
    assert len(store.frames("grid")[0]) == len(spec.runs())


def test_other_code_is_not_taken_for_the_same(tmp_path):
    from dataclasses import replace

    from superarm.experiments.runs import execute_run

    run = read_spec(small_spec(tmp_path)).runs()[0]
    assert "must be the same as where the run was started" in execute_run(replace(run, code="old")).error
    assert "must be the same on every machine" in execute_run(replace(run, data_digest="old")).error


@pytest.mark.slow
def test_reproduce_quick_of_one_figure(tmp_path):
    result = superarm(f"reproduce fig6 table1 --quick --rounds 500 --seeds 2 --output {tmp_path} --jobs 1")
    assert result.exit_code == 0, result.output
    names = sorted(p.stem for p in (tmp_path / "experiments").glob("*.json"))
    assert names == ["fig2", "fig6"]  # fig6 takes its gammas from fig2
    table = polars.read_csv(tmp_path / "report" / "tables" / "fig2-best-gammas.csv")
    ours, paper = table.columns[1::2], table.columns[2::2]
    assert ours == ["SOBA", "MC-DBF, m = 2", "MC-DBF, m = 4", "MC-DBF, m = 7"]
    assert paper == ["paper: SOBA", "paper: low m", "paper: medium m", "paper: high m"]
    assert table["data"].to_list()[:4] == ["synsep", "synnonsep", "digits", "mnist"]
    best = json.loads((tmp_path / "experiments" / "fig6.json").read_text())["runs"]
    chosen = {(c["learner"], c["set_size"]): c["gamma"] for c in best}
    assert chosen["MC-DBF", 4] == table.filter(data="synsep")["MC-DBF, m = 4"].item()


def test_reproduce_refuses_what_it_does_not_know():
    with pytest.raises(InvalidInput, match="WHAT of superarm reproduce must be among fig2"):
        raise superarm("reproduce fig9").exception


@pytest.mark.slow
def test_reproduce_on_other_data(tmp_path):
    line = f"reproduce fig5 --data synsep --rounds 300 --seeds 1 --output {tmp_path} --jobs 1"
    result = superarm(line)
    assert result.exit_code == 0, result.output
    assert set(polars.read_parquet(tmp_path / "runs.parquet")["data"]) == {"synsep"}


def test_a_promised_coverage_without_set_sizes_is_kept_and_in_every_table(tmp_path):
    """With m = 1 there was no promise to keep; and no table told what was kept."""
    learners = '["set-logit:coverage=0.9", "set-logit", "banditron"]'
    text = f'rounds = 8000\nseeds = 2\ndata = ["digits"]\nlearners = {learners}\n'
    store = Store(tmp_path / "s")
    run(read_spec(write_spec(tmp_path, text)), store)
    runs, _ = store.frames("grid")
    assert runs["set_size"].to_list() == [10, 10, 1, 1, 1, 1]
    store.write_tables()
    assert polars.read_parquet(tmp_path / "s" / "runs.parquet")["coverage"].equals(runs["coverage"])
    alone = sa.SetLogit(n_labels=10, n_features=64, coverage=0.9, seed=0)
    trace = sa.simulate(alone, "digits", 8000)
    assert runs.row(0, named=True)["coverage"] == trace.coverage > 0.85
    assert runs.row(0, named=True)["mean_size"] == trace.mean_size
    assert runs["mean_size"].to_list()[2:] == [None] * 4
    rates = (write_report(store.folder).parent / "tables" / "grid-rates.md").read_text()
    assert "| shown miss | coverage | mean size | rounds/s |" in rates
    assert f"| {runs['mean_size'][:2].mean():.2f} ± " in rates


def test_runs_without_a_promise_have_no_column_for_it(tmp_path):
    store = Store(tmp_path / "s")
    run(read_spec(small_spec(tmp_path)), store)
    assert not {"coverage", "mean_size"} & set(store.frames("grid")[0].columns)


def test_set_sizes_bound_a_promise(tmp_path):
    text = 'rounds = 100\nset_sizes = [2, 3]\ndata = ["digits"]\nlearners = ["set-logit:coverage=0.9"]\n'
    assert [one.set_size for one in read_spec(write_spec(tmp_path, text)).runs()] == [2, 3]


def test_tables_of_rows_with_text_and_numbers_beside_tables_of_numbers(tmp_path):
    rows = "".join(f"the text of row {i},{i * 37 % 17 / 4},{'xyz'[i % 3]}\n" for i in range(60))
    (tmp_path / "mine.csv").write_text("words,number,kind\n" + rows)
    mine, learners = '{ source = "mine.csv", label = "kind" }', 'learners = ["set-logit"]\nrounds = 50\n'
    store = Store(tmp_path / "s")
    for name, data in {"both": f'"digits", {mine}', "texts": mine, "digits": '"digits"'}.items():
        run(read_spec(write_spec(tmp_path, f"data = [{data}]\n{learners}", name)), store)
    store.write_tables()
    widths = polars.read_parquet(tmp_path / "s" / "runs.parquet").select("data", "d").unique()
    table = open_data(tmp_path / "mine.csv", label="kind")
    assert isinstance(table.n_features, tuple)
    assert dict(widths.rows()) == {"digits": 64, "mine": sum(table.n_features)}
