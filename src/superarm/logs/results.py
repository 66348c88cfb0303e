"""What an evaluation says: an Evaluation has a PolicyResult for each policy, and this an Estimate by each estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from math import ceil, isfinite, nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from superarm._extras import require_extra
from superarm._html import Markup, format_rate, interval_bar, label_chips, titled_table
from superarm.errors import InvalidInput
from superarm.groups import GroupCoverage

if TYPE_CHECKING:
    import altair
    import polars


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimate of a policy's hit rate.

    Attributes:
        name: ips, snips, dr, pi or pi-dr (`superarm.logs.hit_rates`); or nested (`superarm.logs.nested`).
        value, low, high: the estimate and its interval, within 0 and 1; NaN where there is a problem.
        rows: rows it could use.
        n_eff: how many rows of equal weight would know as much.
        max_weight: the largest weight.
        overlap: of these, the share with a weight other than 0.
        mean_weight: its expectation is 1; else sets are missing, or probabilities are wrong.
        unsupported: the share of rows that are left out, as they have no weight or too heavy a one; the interval allows
            for any outcome in them.
        problem: why it cannot be trusted; empty if it can.
        width: the width of the interval as it would be uncut: cutting it to [0, 1] does not make it sharper.
    """

    name: str
    value: float
    low: float
    high: float
    rows: int
    n_eff: float
    max_weight: float
    overlap: float
    mean_weight: float
    unsupported: float = 0.0
    problem: str = ""
    width: float = field(init=False)

    def __post_init__(self) -> None:
        value, low, high = (nan,) * 3 if self.problem else (self.value, self.low, self.high)
        object.__setattr__(self, "width", 2.0 * max(value - low, high - value))
        for name, number in {"value": value, "low": low, "high": high}.items():
            object.__setattr__(self, name, float(np.clip(number, 0.0, 1.0)))  # NaN stays NaN


def best_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the sound estimate with the narrowest interval before cutting to [0, 1]; ``None`` if there is none."""
    sound = [estimate for estimate in estimates if not estimate.problem]
    return min(sound, key=lambda estimate: estimate.width, default=None)


@dataclass(frozen=True, slots=True)
class RequiredData:
    """What it takes to estimate a policy's hit rate.

    Attributes:
        rows: so many rows like these; ``None`` if no number of them is enough.
        uniform: or this share of uniform sets in as many rows; ``None`` if there is no such share.
        propensities: ``"missing"`` where too many rows have none; ``"wrong"`` or ``"doubtful"`` where weights do not
            average 1: ``"doubtful"`` if sets that were never possible would explain it, too; else empty.
        fewer_labels: whether an answer for fewer labels of the same ranking would tell the least hit rate.
    """

    rows: int | None
    uniform: float | None
    propensities: Literal["", "missing", "doubtful", "wrong"] = ""
    fewer_labels: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class PolicyResult:
    """What a log says about one policy.

    Attributes:
        policy, set_size, rule: which one; ``rule`` is the text that says how it draws.
        estimates: one by each estimator; and nested, where the log can answer for fewer labels alone.
        required: the data that an estimate would take, where there is none.
        mean_size: how many labels it would have shown, on average.
        expected: the hit rate that its probabilities predict, calibrated by the log's answers.
        coverage: the target coverage of its sets, if they have one; ``set_size`` is then the most, and ``best``
            estimates the coverage.
        by_label: what would have been covered of each label, where every held-out row names its right one.
        by_group: the same of each value of the column ``group``, by the best estimate of its rows; nan where they
            cannot answer.
    """

    policy: str
    set_size: int
    rule: str | None
    estimates: tuple[Estimate, ...]
    required: RequiredData
    mean_size: float
    expected: float
    coverage: float | None = None
    by_label: tuple[GroupCoverage, ...] = ()
    by_group: tuple[GroupCoverage, ...] = ()

    @property
    def best(self) -> Estimate | None:
        """The sound estimate with the narrowest interval (before it is cut to [0, 1]); ``None`` if there is none."""
        return best_of(self.estimates)

    @property
    def title(self) -> str:
        """The policy's name, and how it draws."""
        return self.policy if self.rule is None else f"{self.policy}, {self.rule}"

    @property
    def size_text(self) -> str:
        """How many labels it shows, as text; on average, if a coverage decides."""
        return str(self.set_size) if self.coverage is None else f"{self.mean_size:.2f}"

    @property
    def description(self) -> str:
        """The policy's name, how many labels it shows, and how it draws."""
        sizes = f"m = {self.size_text}" if self.coverage is None else f"mean size {self.size_text}"
        return f"{self.policy}, {sizes}" if self.rule is None else f"{self.policy}, {sizes}, {self.rule}"

    def remedy(self, answered: int, holdout: float | None, *, fewer_labels: bool = True) -> str:
        """Return what it would take to answer, if there is no sound estimate: more rows, or uniform sets.

        Args:
            answered: rows of the log with an outcome.
            holdout: the share of them that judged; ``None``: all of them.
            fewer_labels: whether to name a smaller set size, where that may tell the least hit rate.
        """
        required = self.required
        if required.propensities == "missing" and not self.estimates[-1].rows:
            return "it takes a propensity (or the rule) with every decision"
        if required.propensities == "missing":
            return (
                "judge by the rows that have a propensity, if it is chance which lack one (--with-propensity)"
            )
        remedies = ["no number of such rows would do"]
        if required.rows is not None:
            remedies = [f"about {required.rows:,} such rows to judge by would"]
            # some more than needed, in twentieths
            share = ceil(20 * 1.1 * required.rows / max(answered, 1)) / 20
            if holdout is not None and holdout < share <= 0.7:
                remedies[0] += f" (train and evaluate with --holdout {share:g}: this log has {answered:,})"
        if required.uniform is not None:
            digits = 0 if required.uniform > 0.01 else 2
            percent = f"{max(required.uniform, 0.0001):.{digits}%}"
            if_right = "if its propensities are right, " if required.propensities else ""
            remedies.append(f"{if_right}{percent} of uniform sets in as many rows would")
        if required.fewer_labels and fewer_labels:
            sizes = ",".join(map(str, range(1, self.set_size + 1)))
            remedies.append(f"fewer labels may tell how often it hits at least: --set-size {sizes} --grid")
        return "; ".join(remedies)

    def __repr__(self) -> str:
        best = self.best
        result = "the log cannot answer"
        if best is not None:
            result = f"hit rate {best.value:.4f}, 95 % from {best.low:.4f} to {best.high:.4f}, by {best.name}"
        return f"PolicyResult({self.description}: {result})"

    def _repr_html_(self) -> str:
        rows = []
        for estimate in self.estimates:
            best = " (best)" if estimate is self.best else ""
            cells = _estimate_cells(estimate.value, estimate.low, estimate.high)
            rows.append((estimate.name + best, *cells, estimate.problem))
        title = f"{self.title}: estimates of its hit rate"
        return titled_table(title, ("estimator", "hit rate", "95 % interval", "", "problem"), rows)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """What a log says about policies.

    Attributes:
        rows: held-out rows with an outcome; ``unanswered`` held-out rows have none.
        bad: rows of the whole log that cannot be read.
        hit_rate, low, high: of what was shown.
        warnings: what is wrong with the log itself.
        results: one for each policy.
    """

    rows: int
    unanswered: int
    bad: int
    hit_rate: float
    low: float
    high: float
    warnings: tuple[str, ...]
    results: tuple[PolicyResult, ...]

    def to_frame(self) -> polars.DataFrame:
        """Return a table with a row for each estimate of each policy; null where the log cannot answer."""
        require_extra("logs")
        import polars

        rows = [
            {"policy": one.title, "set_size": one.set_size, **asdict(estimate), "best": estimate is one.best}
            for one in self.results
            for estimate in one.estimates
        ]
        return polars.DataFrame(rows, infer_schema_length=None).fill_nan(None)

    def plot(self) -> altair.LayerChart:
        """Return the hit rates against set size with their intervals, a colour for each policy, as an Altair chart."""
        require_extra("plots")
        import altair as alt
        import polars as pl

        from superarm.report.chart import LIGHT, PALETTE, with_inline_scripts

        rows: list[dict[str, Any]] = [
            {
                "policy": result.title,
                "set size": result.set_size if result.coverage is None else result.mean_size,
                "hit rate": result.best.value,
                "low": result.best.low,
                "high": result.best.high,
                "estimate": result.best.name,
            }
            for result in self.results
            if result.best is not None
        ]
        if not rows:
            raise InvalidInput("no figure: the log can answer for no policy")
        sizes = sorted({row["set size"] for row in rows})
        policies = list(dict.fromkeys(row["policy"] for row in rows))
        colours = [PALETTE[i % len(PALETTE)] for i in range(len(policies))]
        by_policy = alt.Chart(pl.DataFrame(rows)).encode(
            x=alt.X(
                "set size:O",
                title="labels shown, m",
                axis=alt.Axis(labelAngle=0),
                scale=alt.Scale(domain=sizes),
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
        logged = alt.Chart(pl.DataFrame({"y": [self.hit_rate]}))
        logged = logged.mark_rule(strokeDash=[5, 4], color="#555").encode(y="y:Q")
        title = f"Hit rate of {rows[0]['policy']}" if len(rows) == 1 else f"Hit rates of {len(rows)} policies"
        note = f"dashed: what was shown, {self.hit_rate:.3f}; judged by {self.rows:,} rows"
        unanswered = len(self.results) - len(rows)
        note += f"; the log cannot answer for {unanswered} more" if unanswered else ""
        look = {key: value for key, value in LIGHT.items() if key != "legend"}
        chart: alt.LayerChart = (logged + intervals + points).configure(**look)
        chart = chart.properties(
            width=min(900, max(420, 46 * len(rows))),
            height=280,
            title=alt.TitleParams(f"{title}, estimated from the log", subtitle=note, anchor="start"),
        )
        return with_inline_scripts(chart)

    def __repr__(self) -> str:
        shown = f"{self.rows:,} rows, hit rate of what was shown {self.hit_rate:.4f}"
        return "\n".join([f"Evaluation({shown})", *(f"  {one!r}" for one in self.results)])

    def _repr_html_(self) -> str:
        logged = _estimate_cells(self.hit_rate, self.low, self.high)
        rows: list[tuple[Any, ...]] = [("what was shown", "", *logged, "")]
        for result in self.results:
            best = result.best
            cells = ("–", "the log cannot answer", "")
            if best is not None:
                cells = _estimate_cells(best.value, best.low, best.high)
            rows.append((result.title, result.size_text, *cells, "" if best is None else best.name))
        head = ("policy", "m", "hit rate", "95 % interval", "", "by")
        estimates = titled_table(f"Judged by {self.rows:,} rows", head, rows)
        warnings = "".join(f"<p>{label_chips(['!'])}{escape(warning)}</p>" for warning in self.warnings)
        return Markup(estimates + warnings)


def _estimate_cells(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Return the cells of an estimate: its value, its interval, both drawn."""
    interval = f"{low:.4f} to {high:.4f}" if isfinite(low) else "–"
    return format_rate(value), interval, interval_bar(low, high, value)
