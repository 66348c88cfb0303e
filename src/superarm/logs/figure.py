"""A figure of an evaluation: hit rates with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from superarm.errors import InvalidInput
from superarm.extras import need
from superarm.logs.evaluation import Evaluation

__all__ = ["chart", "save"]

ENDINGS = (".html", ".svg", ".png", ".pdf", ".json")


def chart(answer: Evaluation) -> Any:
    """An Altair chart: hit rate against set size, a colour for each policy; the log's own dashed."""
    need("plots")
    import altair as alt
    import polars as pl

    rows: list[dict[str, Any]] = [
        {
            "policy": v.policy if v.rule is None else f"{v.policy}, {v.rule}",
            "set size": v.set_size,
            "hit rate": v.best.value,
            "low": v.best.low,
            "high": v.best.high,
            "estimate": v.best.name,
        }
        for v in answer.verdicts
        if v.best is not None
    ]
    if not rows:
        raise InvalidInput.must("figure", "evaluate", "of a policy that the log can answer for", "none")
    data = alt.Chart(pl.DataFrame(rows))
    sizes = sorted({row["set size"] for row in rows})
    x = alt.X(
        "set size:O", title="labels shown, m", axis=alt.Axis(labelAngle=0), scale=alt.Scale(domain=sizes)
    )
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    place = alt.XOffset("policy:N", sort=policies)
    colour = alt.Color(
        "policy:N", title=None, sort=policies, legend=alt.Legend(orient="top", columns=2, labelLimit=400)
    )
    title = "hit rate, with 95 % intervals"
    bars = data.mark_rule(strokeWidth=2).encode(
        x=x,
        xOffset=place,
        color=colour,
        y=alt.Y("low:Q", title=title, scale=alt.Scale(zero=False)),
        y2="high:Q",
    )
    dots = data.mark_point(filled=True, size=70, opacity=1).encode(
        x=x,
        xOffset=place,
        color=colour,
        y="hit rate:Q",
        tooltip=["policy", "set size", "hit rate", "low", "high", "estimate"],
    )
    logged = (
        alt.Chart(pl.DataFrame({"y": [answer.hit_rate]}))
        .mark_rule(strokeDash=[5, 4], color="#555")
        .encode(y="y:Q")
    )
    note = f"dashed: what was shown, {answer.hit_rate:.3f}; judged by {answer.rows:,} rows"
    width = min(900, max(420, 46 * len(rows)))
    return (logged + bars + dots).properties(
        width=width, height=280, title=alt.TitleParams("What the log says", subtitle=note, anchor="start")
    )


def save(answer: Evaluation, path: Path) -> None:
    """Write the figure in the format that the ending names."""
    if path.suffix not in ENDINGS:
        raise InvalidInput.must(
            "--figure", "evaluate", f"a file that ends in {', '.join(ENDINGS)}", str(path)
        )
    made = chart(answer)
    if path.suffix == ".html":
        made.save(path, inline=True)
    else:
        made.save(path, scale_factor=2) if path.suffix == ".png" else made.save(path)
