"""Figures of logs: of one, of a verdict, and of an evaluation. Altair charts in the report's colours."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from superarm._extras import need
from superarm.errors import InvalidInput
from superarm.logs.estimates import interval

if TYPE_CHECKING:
    from superarm.logs.reading import Log
    from superarm.logs.verdicts import Evaluation, Verdict

PARTS, LEAST = 40, 50  # points of a log's curve, and rows behind each
MOST = 25  # labels
BLUE, PALE = "#0072B2", "#b9d5e6"


def evaluation_chart(answer: Evaluation) -> Any:
    """Hit rate against set size, a colour for each policy; the log's own dashed."""
    need("plots")
    import altair as alt
    import polars as pl

    rows: list[dict[str, Any]] = [
        {
            "policy": v.words,
            "set size": v.set_size if v.coverage is None else v.mean_size,
            "hit rate": v.best.rate,
            "low": v.best.low,
            "high": v.best.high,
            "estimate": v.best.name,
        }
        for v in answer.verdicts
        if v.best is not None
    ]
    if not rows:
        raise InvalidInput("no figure: the log can answer for no policy")
    data = alt.Chart(pl.DataFrame(rows))
    sizes = sorted({row["set size"] for row in rows})
    x = alt.X(
        "set size:O", title="labels shown, m", axis=alt.Axis(labelAngle=0), scale=alt.Scale(domain=sizes)
    )
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    place = alt.XOffset("policy:N", sort=policies)
    colour = _colours("policy", policies)
    words = "hit rate, with 95 % intervals"
    bars = data.mark_rule(strokeWidth=2).encode(
        x=x,
        xOffset=place,
        color=colour,
        y=alt.Y("low:Q", title=words, scale=alt.Scale(zero=False)),
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
    silent = len(answer.verdicts) - len(rows)
    note += f"; the log cannot answer for {silent} more" if silent else ""
    width = min(900, max(420, 46 * len(rows)))
    title = f"Hit rate of {rows[0]['policy']}" if len(rows) == 1 else f"Hit rates of {len(rows)} policies"
    return _finished(logged + bars + dots, f"{title}, estimated from the log", note, width, 280)


def verdict_chart(verdict: Verdict) -> Any:
    """Every estimate of one policy's hit rate, with its interval; those that cannot be trusted are grey."""
    need("plots")
    import altair as alt
    import polars as pl

    rows: list[dict[str, Any]] = [
        {
            "estimator": one.name,
            "hit rate": one.rate,
            "low": one.low,
            "high": one.high,
            "is it sound?": "cannot be trusted" if one.problem else "sound",
            "problem": one.problem or "–",
        }
        for one in verdict.estimates
        if one.value == one.value and one.low == one.low
    ]
    if not rows:
        raise InvalidInput("no plot: the policy has no estimate")
    data = alt.Chart(pl.DataFrame(rows))
    y = alt.Y("estimator:N", title=None, sort=[row["estimator"] for row in rows])
    kinds = ["sound", "cannot be trusted"]
    colour = alt.Color("is it sound?:N", title=None, scale=alt.Scale(domain=kinds, range=[BLUE, "#9a9a9a"]))
    ticks, scale = alt.Axis(tickCount=6), alt.Scale(zero=False)
    x = alt.X("low:Q", title="hit rate, with 95 % intervals", scale=scale, axis=ticks)
    bars = data.mark_rule(strokeWidth=3).encode(x=x, x2="high:Q", y=y, color=colour)
    tips = ["estimator", "hit rate", "low", "high", "problem"]
    dots = data.mark_point(filled=True, size=80, opacity=1).encode(
        x="hit rate:Q", y=y, color=colour, tooltip=tips
    )
    best = verdict.best
    note = f"best: {best.name}, {best.rate:.3f}" if best is not None else "the log cannot answer for it"
    return _finished(
        bars + dots,
        f"Hit rate of {verdict.words}, {verdict.sizes}, by every estimate",
        note,
        460,
        34 * len(rows),
    )


def log_chart(log: Log) -> Any:
    """The hit rate along a log's rows, with 95 % intervals; and its labels: how often shown, and hit."""
    need("plots")
    import altair as alt
    import polars as pl

    answers: list[tuple[int, bool]] = []
    shown: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    rows = 0
    for record in log:
        rows += 1
        if record.hit is None:
            continue
        answers.append((rows - 1, record.hit))
        names = [str(label) for label in record.decision.labels]
        shown.update(names)
        if record.hit:
            hits.update(names)
    if not answers:
        raise InvalidInput.must("plot", log.name, "of a log with answers", f"{rows} rows without")
    size = max(LEAST, -(-len(answers) // PARTS))
    points = []
    for start in range(0, len(answers), size):
        part = answers[start : start + size]
        if start and len(part) < size / 2:  # too few to mean much
            break
        rate = sum(hit for _, hit in part) / len(part)
        low, high = interval(rate, (rate * (1.0 - rate) / len(part)) ** 0.5, len(part) - 1)
        middle = (part[0][0] + part[-1][0]) / 2 + 1
        points.append({"row": middle, "hit rate": rate, "low": low, "high": high, "rows": len(part)})
    along = alt.Chart(pl.DataFrame(points)).encode(x=alt.X("row:Q", title="row of the log"))
    scale = alt.Scale(zero=False)
    band = along.mark_area(opacity=0.2, color=BLUE).encode(
        y=alt.Y("low:Q", title="hit rate", scale=scale), y2="high:Q"
    )
    line = along.mark_line(color=BLUE, point={"color": BLUE, "size": 25}).encode(
        y="hit rate:Q", tooltip=["row", "hit rate", "low", "high", "rows"]
    )
    whole = sum(hit for _, hit in answers) / len(answers)
    note = f"{rows:,} rows, {len(answers):,} answered, hit rate {whole:.3f}"
    left = (band + line).properties(width=380, height=260, title="Along the rows, with 95 % intervals")
    common = [name for name, _ in shown.most_common(MOST)]
    labels = [
        {"label": name, "came": came, "rows": n, "share of rows": n / len(answers), "order": order}
        for name in common
        for order, (came, n) in enumerate([("a hit", hits[name]), ("a miss", shown[name] - hits[name])])
    ]
    title = "Labels: how often shown" + (f" (the first {MOST})" if len(shown) > MOST else "")
    kinds = alt.Scale(domain=["a hit", "a miss"], range=[BLUE, PALE])
    right = (
        alt.Chart(pl.DataFrame(labels))
        .mark_bar()
        .encode(
            x=alt.X("share of rows:Q", axis=alt.Axis(format="%", tickCount=5)),
            y=alt.Y("label:N", title=None, sort=common),
            color=alt.Color("came:N", title="the set was", scale=kinds),
            order="order:O",
            tooltip=["label", "came", "rows", alt.Tooltip("share of rows:Q", format=".1%")],
        )
        .properties(width=240, height=260, title=title)
    )
    return _finished(left | right, f"How often the sets of {', '.join(log.names)} hit", note)


def _colours(field: str, values: list[str]) -> Any:
    import altair as alt

    from superarm.report.theme import PALETTE

    legend = alt.Legend(orient="top", columns=2, labelLimit=400)
    scale = alt.Scale(domain=values, range=[PALETTE[i % len(PALETTE)] for i in range(len(values))])
    return alt.Color(f"{field}:N", title=None, sort=values, scale=scale, legend=legend)


def _finished(chart: Any, title: str, note: str, width: int | None = None, height: int | None = None) -> Any:
    """With a title and what there is to say in small print."""
    import altair as alt

    from superarm.report.chart import offline
    from superarm.report.theme import LIGHT

    size = {} if width is None else {"width": width, "height": height}
    look = {key: value for key, value in LIGHT.items() if key != "legend"}  # those of lines
    titled = chart.properties(**size, title=alt.TitleParams(title, subtitle=note, anchor="start"))
    return offline(titled.configure(**look))
