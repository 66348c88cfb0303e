"""What a labelling has come to: how far it is, the label of each row, disagreements, a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superarm._extras import need
from superarm._types import Array
from superarm.decisions import Decision
from superarm.label.belief import Answer, possible
from superarm.label.names import FILE
from superarm.label.plan import FEW_AUDITS
from superarm.label.state import State
from superarm.learners import SetLogit

if TYPE_CHECKING:
    from superarm.label.job import Labelling

__all__ = ["Progress", "curve", "disagreements", "model", "people", "plot", "progress", "results"]

FIRST = 50  # clicks before anything is estimated
STRETCHES = 40  # points of the curve
RECENT = 200  # rows that tell how many clicks a row takes now


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come.

    Attributes:
        rows: of the table.
        labelled: rows that have a label: asked about, or accepted.
        asked: rows that somebody was asked about.
        clicks: answers so far.
        audits: those of them about rows that would have been accepted unasked.
        target: the share of labels that shall be right.
        wrong: the estimated share of wrong labels among those that there are; None before anything can be said.
        interval: of it, at 95 %.
        left: clicks that are still needed, about; None before anything can be said, and if no number can.
        finished: whether there is nothing more to ask; ``wrong`` and ``interval`` say whether the target is met.
        curve: (clicks so far, clicks a row) for each stretch of the work.
    """

    rows: int
    labelled: int
    asked: int
    clicks: int
    audits: int
    target: float
    wrong: float | None
    interval: tuple[float, float] | None
    left: int | None
    finished: bool
    curve: list[tuple[int, float]]

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        parts = [f"{self.labelled:,} of {self.rows:,} labelled"]
        if self.wrong is not None and self.interval is not None:
            low, high = (100 * end for end in self.interval)
            parts.append(f"{100 * self.wrong:.1f} % wrong [{low:.1f}, {high:.1f}]")
        audits = f", {self.audits:,} of them audits" if self.audits else ""
        parts.append(f"{self.clicks:,} clicks{audits}")
        text = ", ".join(parts)
        rest = self.rows - self.labelled
        if self.left is None and self.clicks >= FIRST:
            return f"{text}; {self.outlook}"
        if self.finished or self.left is None or not rest:
            return text
        return f"{text}; the remaining {rest:,} would take about {self.left:,}"

    @property
    def outlook(self) -> str:
        """How much there is still to do; empty at the end."""
        if self.finished:
            return ""
        if self.left is not None:
            return f"about {self.left:,} click{'s' * (self.left != 1)} left"
        if self.clicks < FIRST:
            return "clicks left: too early to say"
        return "clicks left: no number can be told, doubtful rows are asked about until enough is sure"

    def __str__(self) -> str:
        return self.sentence


def progress(job: Labelling) -> Progress:
    """How far the work has come."""
    state, plan, copies = job.state, job.plan, job.rows.copies
    clicks, asked = int(state.clicks.sum()), int(copies[state.looked & (state.label >= 0)].sum())
    finished = bool(plan.is_finished(job.busy()))
    labelled, wrong, interval, left = asked, None, None, None
    if clicks >= FIRST or finished:
        accepted = _accepted(job, finished)
        labelled += int(copies[accepted].sum())
        known = float((copies * state.doubt)[state.looked].sum())
        expected = float((plan.wrong(accepted) * copies[accepted]).sum())
        low, high = plan.interval(accepted)
        if labelled:
            wrong = min(1.0, (known + expected) / labelled)
            interval = float(low / labelled), float(min(1.0, high / labelled))
        left = 0 if finished else _left(job)
    return Progress(
        rows=len(job.rows),
        labelled=labelled,
        asked=asked,
        clicks=clicks,
        audits=state.audits,
        target=job.target,
        wrong=wrong,
        interval=interval,
        left=left,
        finished=finished,
        curve=curve(state, STRETCHES),
    )


def people(job: Labelling) -> dict[str, dict[str, float]]:
    """Of each person, clicks and wrong_rate, the estimated share of them that are wrong."""
    wrong = job.state.wrong_answers
    return {
        name: {"clicks": clicks, "wrong_rate": round(wrong.share(name), 4)}
        for name, clicks in wrong.answers.items()
    }


def _left(job: Labelling) -> int | None:
    """Clicks until enough rows were asked about, at the rate of the last ones; None if they were, and doubts remain."""
    state, plan = job.state, job.plan
    recent = state.order[-RECENT:]
    rate = float(state.clicks[recent].mean()) if recent else 1.0
    open_ = np.count_nonzero(~state.looked)
    clicks = open_ * rate
    if job.target < 1.0:
        audits = min(FEW_AUDITS, open_ / 3) - state.audits  # that there must be
        clicks = min(
            clicks, max(plan.estimate().left * rate / (1.0 - plan.audit_share), audits / plan.audit_share)
        )
    return max(1, round(clicks)) if clicks > 0.0 else None


def _accepted(job: Labelling, finished: bool) -> Array:
    """Rows nobody was asked about whose labels are accepted."""
    rows = np.flatnonzero(~job.state.looked)
    if job.target >= 1.0:
        return rows[:0]
    return rows if finished else rows[job.plan.wrong(rows) < job.plan.estimate().accept]


def curve(state: State, stretches: int) -> list[tuple[int, float]]:
    """(Clicks so far, clicks a row) for stretches of the work of the same number of rows."""
    clicks = state.clicks[state.order]
    clicks = clicks[clicks > 0]  # those of the file cost none
    if not len(clicks):
        return []
    parts = np.array_split(clicks, min(stretches, len(clicks)))
    ends = np.cumsum([part.sum() for part in parts])
    return [(int(end), round(float(part.mean()), 4)) for end, part in zip(ends, parts, strict=True)]


def results(job: Labelling) -> list[dict[str, Any]]:
    """Of each row of the table: row, label (None: none yet), belief, clicks, how it was found, by whom."""
    state, plan = job.state, job.plan
    plan.score()
    accepted = set(_accepted(job, plan.is_finished(job.busy())).tolist())
    wrong = plan.wrong(np.arange(len(job.rows.keys)))
    entries: list[dict[str, Any]] = []
    for row in range(len(job.rows.keys)):
        answers = state.valid(row)
        if state.looked[row]:
            label, belief = int(state.label[row]), 1.0 - float(state.doubt[row])
            how = _how(label, answers, state.live) if label >= 0 else "none fits"
        else:
            label, belief = int(plan.top[row]), 1.0 - float(wrong[row])
            how = "accepted" if row in accepted else ""
        entries.append(
            {
                "label": state.names[label] if how and label >= 0 else None,
                "belief": round(belief, 4),
                "clicks": int(state.clicks[row]),
                "how": how,
                "by": ", ".join(dict.fromkeys(answer.by for answer in answers if answer.by)),
            }
        )
    return [{"row": number, **entries[row]} for number, row in enumerate(job.rows.inverse)]


def _how(label: int, answers: list[Answer], live: Array) -> str:
    """How the label of a row was found."""
    final = [answer for answer in answers if answer.final]
    if final:
        return "file" if final[-1].by == FILE else "settled"
    named = sum(
        answer.label == label or (bool(answer.hit) and answer.shown == (label,)) for answer in answers
    )
    if named:
        return "confirmed" if named > 1 else "named"
    return "excluded" if np.count_nonzero(possible(answers, live)) == 1 else "believed"


def disagreements(job: Labelling) -> list[dict[str, Any]]:
    """Rows about which not all answers can be true, and nobody has settled it."""
    state, conflicts = job.state, []
    for row in state.answers:
        answers = state.valid(row)
        if not answers or any(answer.final for answer in answers) or possible(answers, state.live).any():
            continue
        if state.label[row] < 0:  # none of all the labels fits
            continue
        first = int(job.rows.first[row])
        conflicts.append(
            {
                "number": first,
                "row": job.rows.shown(first, job.show),
                "label": state.names[int(state.label[row])],
                "answers": [_answer_dict(answer, state.names) for answer in answers],
            }
        )
    return conflicts


def _answer_dict(answer: Answer, names: list[str]) -> dict[str, Any]:
    return {
        "by": answer.by,
        "label": names[answer.label] if answer.label >= 0 else None,
        "labels": [names[one] for one in answer.shown],
        "hit": answer.hit,
    }


def model(job: Labelling, passes: int) -> SetLogit:
    """A learner of its own, taught with all labels that there are, in random order."""
    rows = results(job)
    labels = [rows[int(number)]["label"] for number in job.rows.first]
    learner = SetLogit(labels=job.label_names, seed=job.seed)
    if job.rows.columns is not None:
        learner.use_columns(job.rows.columns)
    known = np.array([row for row, label in enumerate(labels) if label is not None], np.int64)
    random = np.random.default_rng(job.seed)
    for _ in range(passes):
        for row in random.permutation(known):
            given = Decision.given(job.state.rows.row(int(row)), [labels[row]])
            learner.update(given, label=labels[row])
    return learner


def plot(job: Labelling) -> Any:
    """Clicks a row as the work goes on, as an Altair chart."""
    need("plots")
    import altair

    points = [{"clicks": clicks, "clicks a row": rate} for clicks, rate in curve(job.state, STRETCHES)]
    title = f"{job.rows.name}: clicks a row, as the work goes on"
    chart = altair.Chart(altair.InlineData(values=points), title=title)
    return chart.mark_line(point=True).encode(
        x=altair.X("clicks:Q", title="clicks so far"),
        y=altair.Y("clicks a row:Q", scale=altair.Scale(domainMin=0.0)),
    )
