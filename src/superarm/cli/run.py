"""superarm run: a grid of experiments from a spec file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from superarm._extras import need

if TYPE_CHECKING:
    from superarm.experiments import Spec, Store
    from superarm.experiments.cells import Failed

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
    command goes on with what is missing.

    Example: **superarm run grid.toml --jobs 2**
    """
    need("experiments")  # before an hour's work, not after it
    from superarm.experiments import Store, read_spec

    checked = read_spec(spec, quick=quick)
    store = Store(output or Path("results") / checked.name)
    failures = execute([checked], store, jobs=jobs, engine=engine, address=address)
    finish(store, failures, report=report)


def execute(
    specs: list[Spec], store: Store, *, jobs: int, engine: str = "local", address: str | None = None
) -> list[Failed]:
    """Run specs one after another; all failures."""
    import os

    from superarm.cli.show import tell
    from superarm.experiments import run as run_spec

    failures: list[Failed] = []
    for spec in specs:
        try:
            processes = jobs or os.cpu_count() or 1
            summary = run_spec(spec, store, jobs=processes, engine=engine, address=address, progress=True)
        except KeyboardInterrupt:
            tell(f"stopped; finished runs are kept in {store.folder}, the same command goes on")
            raise
        failures += summary.failures
        tell(
            f"{summary.name}: {summary.cells} runs, {summary.stored} of them from before, "
            f"{len(summary.failures)} failed, {summary.seconds:.0f} s"
        )
    return failures


def finish(store: Store, failures: list[Failed], *, report: bool) -> None:
    """Tables, report, and the exit code."""
    from superarm.cli.show import tell

    store.write_tables()
    if report:
        from superarm.report import write_report

        show_report(write_report(store.folder))
    else:
        print(f"results are in {store.folder}")
    if failures:
        for failure in failures[:5]:
            cell = failure.cell
            where = f"{cell.learner}, m = {cell.set_size}, seed {cell.seed} on {cell.data.name}"
            tell(f"failed: {where}: {failure.error}")
        tell(f"{len(failures)} failed in all; details in {store.folder / 'failed'}")
        raise typer.Exit(1)


def show_report(path: Path) -> None:
    """Say where the report is; open it if somebody sits at a screen."""
    from superarm.cli.show import open_page

    print(path)
    open_page(path.resolve().as_uri())
