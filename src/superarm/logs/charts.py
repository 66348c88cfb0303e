"""The figure of an evaluation: an Altair chart in the report's colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superarm._extras import require_extra
from superarm.errors import InvalidInput

if TYPE_CHECKING:
    from superarm.logs.results import Evaluation


def evaluation_chart(evaluation: Evaluation) -> Any:
    """Hit rate against set size, a colour for each policy; the log's own dashed."""
    require_extra("plots")
    import altair as alt
    import polars as pl

    from superarm.report.chart import offline
    from superarm.report.theme import LIGHT, PALETTE

    rows: list[dict[str, Any]] = [
        {
            "policy": result.title,
            "set size": result.set_size if result.coverage is None else result.mean_size,
            "hit rate": result.best.rate,
            "low": result.best.low,
            "high": result.best.high,
            "estimate": result.best.name,
        }
        for result in evaluation.results
        if result.best is not None
    ]
    if not rows:
        raise InvalidInput("no figure: the log can answer for no policy")
    sizes = sorted({row["set size"] for row in rows})
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(policies))]
    by_policy = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X(
            "set size:O", title="labels shown, m", axis=alt.Axis(labelAngle=0), scale=alt.Scale(domain=sizes)
        ),
        xOffset=alt.XOffset("policy:N", sort=policies),
        color=alt.Color(
            "policy:N",
            title=None,
            sort=policies,
            scale=alt.Scale(domain=policies, range=colours),
            legend=alt.Legend(orient="top", columns=2, labelLimit=400),
        ),
    )
    low = alt.Y("low:Q", title="hit rate, with 95 % intervals", scale=alt.Scale(zero=False))
    intervals = by_policy.mark_rule(strokeWidth=2).encode(y=low, y2="high:Q")
    points = by_policy.mark_point(filled=True, size=70, opacity=1).encode(
        y="hit rate:Q", tooltip=["policy", "set size", "hit rate", "low", "high", "estimate"]
    )
    logged = alt.Chart(pl.DataFrame({"y": [evaluation.hit_rate]}))
    logged = logged.mark_rule(strokeDash=[5, 4], color="#555").encode(y="y:Q")
    title = f"Hit rate of {rows[0]['policy']}" if len(rows) == 1 else f"Hit rates of {len(rows)} policies"
    note = f"dashed: what was shown, {evaluation.hit_rate:.3f}; judged by {evaluation.rows:,} rows"
    unanswered = len(evaluation.results) - len(rows)
    note += f"; the log cannot answer for {unanswered} more" if unanswered else ""
    chart = (logged + intervals + points).properties(
        width=min(900, max(420, 46 * len(rows))),
        height=280,
        title=alt.TitleParams(f"{title}, estimated from the log", subtitle=note, anchor="start"),
    )
    return offline(chart.configure(**{key: value for key, value in LIGHT.items() if key != "legend"}))
