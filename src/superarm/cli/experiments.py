"""Commands for experiments: run, reproduce, report, demo."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from superarm._extras import require_extra
from superarm.cli.output import open_page, print_note, print_table
from superarm.errors import InvalidInput

if TYPE_CHECKING:
    from superarm.experiments import Spec, Store
    from superarm.experiments.runs import RunFailure


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where runs are made, and where their results go: its fields are options of a command."""

    output: Annotated[Path | None, Option(help="Where results and report go.")] = None
    jobs: Annotated[int, Option(help="Processes on this machine; 0: one for each core.", min=0)] = 0
    engine: Annotated[str, Option(help="local, or dask for a cluster.")] = "local"
    address: Annotated[str | None, Option(help="Of the Dask scheduler, as tcp://host:8786.")] = None


def run(
    spec: Annotated[Path, Argument(help="A spec file (.toml).")],
    options: RunOptions = RunOptions(),  # noqa: B008  (the options in its fields)
    quick: Annotated[bool, Option("--quick", help="Apply the spec's table 'quick'.")] = False,
    report: Annotated[bool, Option(help="Write the report at the end.")] = True,
) -> None:
    """Run a grid: data x learners x set sizes x gammas x seeds.

    Finished runs are kept as they finish. Break it off at any time, by Ctrl-C or worse: the same
    command goes on with what is missing. Learners scale rows as each does by itself, unless the spec
    has **scaling**.

    Example: **superarm run grid.toml --jobs 2**
    """
    require_extra("experiments")  # before an hour's work, not after it
    from superarm.experiments import Store, read_spec

    grid = read_spec(spec, quick=quick)
    store = Store(options.output or Path("results") / grid.name)
    failures = execute([grid], store, options)
    finish(store, failures, report=report)


def execute(specs: list[Spec], store: Store, options: RunOptions) -> list[RunFailure]:
    """Run specs one after another; return all failures."""
    from superarm.experiments import run as run_spec

    jobs = options.jobs or os.cpu_count() or 1
    failures: list[RunFailure] = []
    for spec in specs:
        try:
            summary = run_spec(
                spec, store, jobs=jobs, engine=options.engine, address=options.address, progress=True
            )
        except KeyboardInterrupt:
            print_note(f"stopped; finished runs are kept in {store.folder}, the same command goes on")
            raise
        failures += summary.failures
        print_note(
            f"{summary.name}: {summary.runs} runs, {summary.stored} of them from before, "
            f"{len(summary.failures)} failed, {summary.seconds:.0f} s"
        )
    return failures


def finish(store: Store, failures: list[RunFailure], *, report: bool) -> None:
    """Write tables and the report, print failures, and set the exit code."""
    store.write_tables()
    if report:
        from superarm.report import write_report

        show_report(write_report(store.folder))
    else:
        print(f"results are in {store.folder}")
    if failures:
        for failure in failures[:5]:
            run = failure.run
            where = f"{run.learner}, m = {run.set_size}, seed {run.seed} on {run.data}"
            print_note(f"failed: {where}: {failure.error}")
        print_note(f"{len(failures)} failed in all; details in {store.folder / 'failed'}")
        raise Exit(1)


def show_report(path: Path) -> None:
    """Print where the report is, and open it in the browser, where there is one."""
    print(path)
    open_page(path.resolve().as_uri())


FIGURE_OF_TABLE = {"table1": "fig2"}  # whose results make the table


def reproduce(
    what: Annotated[
        list[str] | None,
        Argument(help="fig2 fig3 fig4 fig5 fig6 table1, ours bound dilution; all of them by default."),
    ] = None,
    data: Annotated[
        str | None, Option(help="Other data, as mnist,fashion-mnist,cifar10,svhn or files; not the embedded.")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Fewer rounds and seeds: about a minute.")] = False,
    rounds: Annotated[int | None, Option(help="Rounds a run.", min=1)] = None,
    seeds: Annotated[int | None, Option(help="Runs for each point.", min=1)] = None,
    options: RunOptions = RunOptions(),  # noqa: B008  (the options in its fields)
) -> None:
    """Make the paper's figures and table again, and ours beside them.

    By default on the embedded data (SYNSEP, SYNNONSEP, digits). It goes on where it was broken off.

    Example: **superarm reproduce fig2 table1 --quick**
    """
    require_extra("experiments")
    from superarm.experiments import Store

    specs = _paper_specs(what, None if data is None else data.split(","), quick=quick)
    specs = [spec.with_axes(rounds=rounds, seeds=seeds) for spec in specs]
    store = Store(options.output or Path("results") / ("reproduce-quick" if quick else "reproduce"))
    failures = execute(specs, store, options)
    finish(store, failures, report=True)


def _paper_specs(what: list[str] | None, data: list[str] | None, *, quick: bool) -> list[Spec]:
    """Return the specs of figures and tables, all by default, and of those whose results they need, in their order."""
    from superarm.experiments import paper_specs

    specs = paper_specs(quick=quick)
    choices = [*specs, *FIGURE_OF_TABLE]
    for name in what or ():
        if name not in choices:
            wanted = f"among {', '.join(choices)}"
            raise InvalidInput.must("WHAT", "superarm reproduce", wanted, name, choices=choices)
    names = {FIGURE_OF_TABLE.get(name, name) for name in what or specs}
    # the gammas of the other figures come from fig2
    names |= {source for name in names if (source := specs[name].best_from) is not None}
    if data is not None:  # experiments about one data set stay with it
        specs = {
            name: spec.with_data(data) if spec.data_replaceable else spec for name, spec in specs.items()
        }
    return [spec for name, spec in specs.items() if name in names]


def report(
    folder: Annotated[Path, Argument(metavar="DIR", help="Results of run or reproduce.")],
    output: Annotated[Path | None, Option(help="Where the report goes; DIR/report by default.")] = None,
) -> None:
    """Write one HTML file that works offline, and figures and tables as files beside it.

    Example: **superarm report results/grid**
    """
    from superarm.report import write_report

    print(write_report(folder, output))


def demo(
    output: Annotated[Path, Option(help="Where results and report go.")] = Path("superarm-demo"),
    rounds: Annotated[int | None, Option(help="Rounds a run; 50,000 by default.", min=100)] = None,
    seeds: Annotated[int | None, Option(help="Runs a learner; 5 by default.", min=1)] = None,
) -> None:
    """Every learner on SYNSEP and scikit-learn's digits: two tables, and a report to open.

    SetLogit and MC-DBF are told a bit about a set of three labels, the bandit learners a bit about one
    label, those marked (labels) every label.

    Example: **superarm demo**
    """
    require_extra("experiments")
    from polars import selectors

    from superarm.experiments import DEMO_SPEC, Store, read_spec
    from superarm.report.stats import summary
    from superarm.report.tables import text_cells
    from superarm.simulation import RATES

    spec = read_spec(DEMO_SPEC).with_axes(rounds=rounds, seeds=seeds)
    store = Store(output)
    failures = execute([spec], store, RunOptions())
    runs, _ = store.frames(spec.name)
    for (data,), data_runs in runs.group_by("data", maintain_order=True):
        title = f"{data}: {data_runs['rounds'][0]:,} rounds, {data_runs['seed'].n_unique()} seed(s)"
        title += ", mean ± half of the 95 % interval"
        table = summary(data_runs).select("learner", "set_size", selectors.starts_with(*RATES))
        print_table(title, *text_cells(table))
        print()
    finish(store, failures, report=True)
