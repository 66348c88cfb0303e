"""write_report: everything that can be made from a store of results."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import vl_convert

from superarm._files import write_atomically
from superarm.errors import InvalidInput
from superarm.experiments.spec import Figure
from superarm.experiments.store import Experiment, Store
from superarm.report.chart import Chart
from superarm.report.figures import figure_charts
from superarm.report.findings import figure_findings
from superarm.report.page import FigureView, Section, render_page
from superarm.report.tables import experiment_tables, to_markdown


def write_report(store_dir: Path | str, output_dir: Path | str | None = None, *, files: bool = True) -> Path:
    """Write the report of a directory of results.

    Args:
        store_dir: where `superarm run` or `superarm reproduce` put results.
        output_dir: where the report goes; ``report`` in the store by default.
        files: write each figure as SVG, PDF and PNG and each table as CSV and Markdown, too.

    Returns:
        The HTML file, which works alone and offline.
    """
    store = Store(store_dir)
    experiments = store.experiments()
    if not experiments:
        raise InvalidInput.must(
            "DIR", "superarm report", "a directory with results of run or reproduce", str(store_dir)
        )
    output = Path(output_dir) if output_dir is not None else store.folder / "report"
    output.mkdir(parents=True, exist_ok=True)
    learners = list(dict.fromkeys(name for experiment in experiments for name in experiment.learners))
    sections = [_section(store, experiment, learners) for experiment in experiments]
    if files:
        for section in sections:
            _write_files(section, output)
    headline = experiments[0].title if len(experiments) == 1 else "Learning from one bit about a set"
    text = render_page(headline, _intro(sections), sections)
    write_atomically(output / "index.html", lambda file: file.write(text.encode()))
    return output / "index.html"


def _section(store: Store, experiment: Experiment, learners: list[str]) -> Section:
    runs, curves = store.frames(experiment.name)
    figures = experiment.spec_file.figures or _default_figures(runs)
    views = []
    for i, figure in enumerate(figures, 1):
        name = experiment.name if len(figures) == 1 else f"{experiment.name}-{i}"
        charts = figure_charts(figure, name, experiment.title, runs=runs, curves=curves, learners=learners)
        views.append(
            FigureView(figure, charts, figure_findings(figure, runs, experiment.spec_file.reference))
        )
    failures = store.failures(experiment.keys)
    missing = len(experiment.keys) - len({*runs["key"]} if len(runs) else ()) - len(failures)
    tables = experiment_tables(experiment, figures, runs)
    return Section(experiment, views, tables, _provenance(runs), failures, missing)


def _default_figures(runs: pl.DataFrame) -> tuple[Figure, ...]:
    """Return the figures of a spec without any: error against rounds, and against gamma and m where they vary."""
    figures = [Figure("rounds", title="Error against rounds", log=("x",))]
    if len(runs) and runs["gamma"].drop_nulls().n_unique() > 1:
        figures.append(Figure("gamma", title="Error against γ"))
    if len(runs) and runs["set_size"].n_unique() > 1:
        figures.append(Figure("set-size", title="Error against m"))
    return tuple(figures)


def _provenance(runs: pl.DataFrame) -> dict[str, str]:
    """Return versions and machines behind the results."""
    if not len(runs):
        return {}
    provenance = {
        "runs": f"{len(runs):,}",
        "rounds": f"{sum(runs['rounds']):,}",
        "time in learners' loops": f"{sum(runs['seconds']):,.0f} s",
    }
    for column in ("cpu", "cores", "system", *(c for c in runs.columns if c.startswith("version_"))):
        values = [str(v) for v in dict.fromkeys(runs[column].to_list())]
        provenance[column.removeprefix("version_")] = ", ".join(values)
    return provenance


def _intro(sections: list[Section]) -> str:
    n_runs = sum(len(s.experiment.runs) for s in sections)
    return (
        "Each round a learner sees a row, shows m of k labels, and is told one bit: whether the right "
        "label was among them. The error rate is the share of rounds so far whose top label was wrong. "
        "Lines are means over seeds, bands their 95 % intervals; learners share seeds, so differences are "
        f"paired. {n_runs:,} runs are shown. Click a legend's entry to single out a curve; point at a curve "
        "for its numbers."
    )


# ---------------------------------------------------------------- files


def _write_files(section: Section, output: Path) -> None:
    for folder in ("figures", "tables"):
        (output / folder).mkdir(exist_ok=True)
    for table in section.tables:
        (output / "tables" / f"{table.name}.csv").write_text(table.frame.write_csv(), encoding="utf-8")
        notes = "".join(f"\n{note}\n" for note in table.notes)
        text = f"**{table.title}**\n\n{to_markdown(table.frame)}{notes}"
        (output / "tables" / f"{table.name}.md").write_text(text, encoding="utf-8")
    for figure_view in section.figures:
        for chart in figure_view.charts:
            for kind, content in _rendered(chart).items():
                (output / "figures" / f"{chart.name}.{kind}").write_bytes(content)


def _rendered(chart: Chart) -> dict[str, bytes]:
    """Return a chart as SVG, PDF and PNG, drawn without a browser."""
    svg = vl_convert.vegalite_to_svg(chart.standalone())
    return {
        "svg": svg.encode(),
        "pdf": vl_convert.svg_to_pdf(svg),
        "png": vl_convert.svg_to_png(svg, scale=2),
    }
