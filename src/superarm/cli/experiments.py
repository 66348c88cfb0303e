"""Commands for experiments: run, reproduce, report, demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from superarm._extras import require_extra
from superarm.cli.output import open_page, print_note, print_table
from superarm.errors import InvalidInput

if TYPE_CHECKING:
    from superarm.experiments import Spec, Store
    from superarm.experiments.runs import RunFailure


Jobs = Annotated[int, typer.Option(help="Processes on this machine; 0: one for each core.", min=0)]
Engine = Annotated[str, typer.Option(help="local, or dask for a cluster.")]
Address = Annotated[str | None, typer.Option(help="Of the Dask scheduler, as tcp://host:8786.")]
Output = Annotated[Path | None, typer.Option(help="Where results and report go.")]


def run(
    spec: Annotated[Path, typer.Argument(help="A spec file (.toml).")],
    output: Output = None,
    jobs: Jobs = 0,
    engine: Engine = "local",
    address: Address = None,
    quick: Annotated[bool, typer.Option("--quick", help="Apply the spec's table 'quick'.")] = False,
    report: Annotated[bool, typer.Option(help="Write the report at the end.")] = True,
) -> None:
    """Run a grid: data x learners x set sizes x gammas x seeds.

    Finished runs are kept as they finish. Break it off at any time, by Ctrl-C or worse: the same
    command goes on with what is missing. Learners scale rows as each does by itself, unless the spec
    has **scaling**.

    Example: **superarm run grid.toml --jobs 2**
    """
    require_extra("experiments")  # before an hour's work, not after it
    from superarm.experiments import Store, read_spec

    checked = read_spec(spec, quick=quick)
    store = Store(output or Path("results") / checked.name)
    failures = execute([checked], store, jobs=jobs, engine=engine, address=address)
    finish(store, failures, report=report)


def execute(
    specs: list[Spec], store: Store, *, jobs: int, engine: str = "local", address: str | None = None
) -> list[RunFailure]:
    """Run specs one after another; all failures."""
    import os

    from superarm.experiments import run as run_spec

    failures: list[RunFailure] = []
    for spec in specs:
        try:
            processes = jobs or os.cpu_count() or 1
            summary = run_spec(spec, store, jobs=processes, engine=engine, address=address, progress=True)
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
        raise typer.Exit(1)


def show_report(path: Path) -> None:
    """Print where the report is, and open it if somebody sits at a screen."""
    print(path)
    open_page(path.resolve().as_uri())


TABLES = {"table1": "fig2"}  # a table that is made from a figure's results


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="fig2 fig3 fig4 fig5 fig6 table1, ours bound dilution; all of them by default."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Other data, as mnist,fashion-mnist,cifar10,svhn or files; not the embedded."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds and seeds: about a minute.")] = False,
    rounds: Annotated[int | None, typer.Option(help="Rounds a run.", min=1)] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs for each point.", min=1)] = None,
    output: Output = None,
    jobs: Jobs = 0,
    engine: Engine = "local",
    address: Address = None,
) -> None:
    """Make the paper's figures and table again, and ours beside them.

    By default on the embedded data (SYNSEP, SYNNONSEP, digits). It goes on where it was broken off.

    Example: **superarm reproduce fig2 table1 --quick**
    """
    require_extra("experiments")
    from superarm.experiments import Store, paper_specs, read_spec

    paths = paper_specs()
    names = list(dict.fromkeys(TABLES.get(name, name) for name in what or paths))
    for name in names:
        if name not in paths:
            choices = [*paths, *TABLES]
            wanted = f"among {', '.join(choices)}"
            raise InvalidInput.must("WHAT", "superarm reproduce", wanted, name, choices=choices)
    specs = {name: read_spec(paths[name], quick=quick) for name in paths}
    for name in list(names):  # the gammas of the other figures come from fig2
        source = specs[name].best_from
        if source is not None and source not in names:
            names.insert(0, source)
    if data is not None:
        sources = data.split(",")  # experiments about one data set stay with it
        specs = {name: s.with_data(sources) if s.data_replaceable else s for name, s in specs.items()}
    ready = [
        specs[name].with_axes(rounds=rounds, seeds=seeds)
        for name in sorted(names, key=lambda n: specs[n].order)
    ]
    store = Store(output or Path("results") / ("reproduce-quick" if quick else "reproduce"))
    failures = execute(ready, store, jobs=jobs, engine=engine, address=address)
    finish(store, failures, report=True)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of run or reproduce.")],
    output: Annotated[Path | None, typer.Option(help="Where the report goes; DIR/report by default.")] = None,
) -> None:
    """Write one HTML file that works offline, and figures and tables as files beside it.

    Example: **superarm report results/grid**
    """
    from superarm.report import write_report

    print(write_report(folder, output))


def demo(
    output: Annotated[Path, typer.Option(help="Where results and report go.")] = Path("superarm-demo"),
    rounds: Annotated[int | None, typer.Option(help="Rounds a run; 50,000 by default.", min=100)] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs a learner; 5 by default.", min=1)] = None,
) -> None:
    """Every learner on SYNSEP and scikit-learn's digits: two tables, and a report to open.

    SetLogit and MC-DBF are told a bit about a set of three labels, the bandit learners a bit about one
    label, those marked (labels) every label.

    Example: **superarm demo**
    """
    require_extra("experiments")
    from superarm.experiments import DEMO_SPEC, Store, read_spec
    from superarm.report.stats import with_interval
    from superarm.report.tables import mean_and_half
    from superarm.simulation import RATES

    spec = read_spec(DEMO_SPEC).with_axes(rounds=rounds, seeds=seeds)
    store = Store(output)
    failures = execute([spec], store, jobs=0, engine="local", address=None)
    runs, _ = store.frames(spec.name)
    for (data,), of_data in runs.group_by("data", maintain_order=True):
        rows = []
        for (learner,), of_learner in of_data.group_by("learner", maintain_order=True):
            means = [with_interval(of_learner, ["learner"], rate) for rate in RATES]
            cells = [mean_and_half(one["mean"].item(), one["half"].item()) for one in means]
            rows.append([str(learner), str(of_learner["set_size"][0]), *cells])
        title = f"{data}: {of_data['rounds'][0]:,} rounds, {of_learner.height} seed(s)"
        title += ", mean ± half of the 95 % interval"
        print_table(title, ["learner", "m", "error", "miss", "shown miss"], rows)
        print()
    finish(store, failures, report=True)
