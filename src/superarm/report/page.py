"""The report as one HTML file with everything in it: data, figures and the code that draws them."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

import vl_convert

from superarm.experiments.runs import RunFailure
from superarm.experiments.spec import Figure
from superarm.experiments.store import Experiment
from superarm.report.chart import DARK, INK, LIGHT, Chart
from superarm.report.tables import TableView, to_html


@dataclass(frozen=True, slots=True)
class FigureView:
    """A figure, its charts, and its findings in words."""

    figure: Figure
    charts: list[Chart]
    findings: list[str]


@dataclass(frozen=True, slots=True)
class Section:
    """What the page shows of one experiment."""

    experiment: Experiment
    figures: list[FigureView]
    tables: list[TableView]
    provenance: dict[str, str]  # versions and machines
    failures: list[RunFailure]
    missing: int


def render_page(title: str, intro: str, sections: Sequence[Section]) -> str:
    """Return the whole page as HTML."""
    links = "".join(
        f'<a href="#{_escape(s.experiment.name)}">{_escape(s.experiment.name)}: {_escape(s.experiment.title)}</a>'
        for s in sections
    )
    body = f"<h1>{_escape(title)}</h1>\n<p>{_escape(intro)}</p>\n" + (
        f"<nav>{links}</nav>\n" if len(sections) > 1 else ""
    )
    body += "\n".join(_section(section, alone=len(sections) == 1) for section in sections)
    charts = {chart.name: chart.spec for s in sections for view in s.figures for chart in view.charts}
    content = {"charts": charts, "light": LIGHT, "dark": DARK, "ink": INK}
    return Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8")).substitute(
        title=_escape(title),
        body=body,
        library=vl_convert.javascript_bundle().replace("</script", "<\\/script"),  # type: ignore[call-arg]
        figures=json.dumps(content, separators=(",", ":")).replace("</", "<\\/"),
    )


def _section(section: Section, *, alone: bool) -> str:
    experiment = section.experiment
    parts = [f'<section id="{_escape(experiment.name)}">']
    if not alone:  # else it is the page's title
        parts.append(f"<h2>{_escape(experiment.title)}</h2>")
    if section.failures or section.missing:
        parts.append(_missing_runs(section))
    for view in section.figures:
        figure = view.figure
        if figure.title:
            parts.append(f"<h3>{_escape(figure.title)}</h3>")
        if figure.note:
            parts.append(f"<p>{_escape(figure.note)}</p>")
        if figure.paper:
            parts.append(f'<div class="remark"><b>The paper says</b>{_escape(figure.paper)}</div>')
        if view.findings:
            items = "".join(f"<li>{_escape(sentence)}</li>" for sentence in view.findings)
            parts.append(f'<div class="remark"><b>What came out</b><ul>{items}</ul></div>')
        parts.append(f'<div class="charts">{"".join(_chart(chart) for chart in view.charts)}</div>')
    for i, table in enumerate(section.tables):
        shown = " open" if i == 0 and len(table.frame) <= 12 else ""
        notes = "".join(f"<p>{_escape(note)}</p>" for note in table.notes)
        links = f'<a href="tables/{table.name}.csv">CSV</a> <a href="tables/{table.name}.md">Markdown</a>'
        parts.append(
            f"<details{shown}><summary>{_escape(table.title)}</summary>{to_html(table.frame)}{notes}"
            f'<span class="quiet">{links}</span></details>'
        )
    parts.append(f"<details><summary>The spec</summary><pre>{_escape(experiment.spec)}</pre></details>")
    if section.provenance:
        text = "; ".join(f"{key}: {value}" for key, value in section.provenance.items())
        parts.append(f'<p class="quiet">{_escape(text)}</p>')
    return "\n".join([*parts, "</section>"])


def _missing_runs(section: Section) -> str:
    kinds: dict[str, int] = {}
    for failure in section.failures:
        kinds[failure.error] = kinds.get(failure.error, 0) + 1
    items = [f"{count} failed: {error}" for error, count in kinds.items()]
    if section.missing:
        items.append(f"{section.missing} have not run yet")
    text = "".join(f"<li>{_escape(item)}</li>" for item in items)
    return f'<div class="remark bad"><b>Runs that are missing here</b><ul>{text}</ul></div>'


def _chart(chart: Chart) -> str:
    links = " ".join(
        f'<a href="figures/{chart.name}.{kind}">{kind.upper()}</a>' for kind in ("svg", "pdf", "png")
    )
    return (
        f"<figure><figcaption>{_escape(chart.title)}</figcaption>"
        f'<div class="chart" id="chart-{_escape(chart.name)}"></div><span class="quiet">{links}</span></figure>'
    )


def _escape(text: object) -> str:
    return html.escape(str(text))
