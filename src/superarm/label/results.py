"""What a labelling has come to: how far it is, the label of each row, disagreements, a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from superarm._extras import need
from superarm._types import Array
from superarm.decisions import Decision
from superarm.label.belief import Answer, possible
from superarm.label.names import FILE
from superarm.label.plan import Plan
from superarm.label.rows import LabelRows
from superarm.label.state import State
from superarm.learners import SetLogit

FIRST = 50  # clicks before anything is estimated
STRETCHES = 40  # points of the curve
RECENT = 200  # rows that tell how many clicks a row takes now


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come.

    Attributes:
        rows: of the table.
        labelled: rows that have a label: asked about, or accepted (none before there were enough audits).
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
        text = ", ".join([*parts, f"{self.clicks:,} clicks{audits}"])
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


class Results:
    """The part of a `Labelling` that tells what came out."""

    rows: LabelRows
    state: State
    plan: Plan
    target: float
    seed: int
    show: tuple[str, ...]

    def progress(self) -> Progress:
        """How far the work has come."""
        state, plan, copies = self.state, self.plan, self.rows.copies
        clicks, asked = int(state.clicks.sum()), int(copies[state.done & (state.label >= 0)].sum())
        finished = plan.is_finished()
        accepted = self._accepted(finished)
        labelled, wrong, interval, left = asked + int(copies[accepted].sum()), None, None, None
        if clicks >= FIRST or finished:
            low, high = plan.interval(accepted)
            if labelled:
                wrong = min(1.0, plan.expected_wrong(accepted) / labelled)
                interval = float(low / labelled), float(min(1.0, high / labelled))
            left = 0 if finished else self._clicks_left()
        return Progress(
            rows=len(self.rows),
            labelled=labelled,
            asked=asked,
            clicks=clicks,
            audits=state.audits,
            target=self.target,
            wrong=wrong,
            interval=interval,
            left=left,
            finished=finished,
            curve=self.curve(),
        )

    def _clicks_left(self) -> int | None:
        """Until enough rows were asked about, at the rate of the last ones; None if they were, and doubts remain."""
        state, plan = self.state, self.plan
        learnt = max(1, len(state.done_order))
        recent = state.done_order[-min(RECENT, -(-learnt // 4)) :]
        more = float(state.clicks[recent].mean()) - 1.0 if recent else 0.0  # than one click a row
        open_ = int(np.count_nonzero(~state.done))

        def clicks_for(rows: float) -> float:
            return rows + more * learnt * float(np.log1p(rows / learnt))  # fewer and fewer, like 1 / rows

        clicks = clicks_for(open_)
        if self.target < 1.0:
            if plan.estimate.left is None:
                return None
            needed = clicks_for(plan.estimate.left / (1.0 - plan.audit_share))
            clicks = min(clicks, max(needed, plan.audits_missing() / plan.audit_share))
        return max(1, round(clicks)) if clicks > 0.0 else None

    def _accepted(self, finished: bool) -> Array:
        """Rows nobody was asked about whose labels are accepted: none before there were enough audits."""
        rows = np.flatnonzero(~self.state.done)
        if self.target >= 1.0 or self.plan.audits_missing() > 0:
            return rows[:0]
        return rows if finished else rows[self.plan.wrong(rows) < self.plan.estimate.accept]

    def people(self) -> dict[str, dict[str, float]]:
        """Of each person, clicks and wrong_rate, the estimated share of them that are wrong."""
        wrong = self.state.wrong_answers
        return {
            name: {"clicks": clicks, "wrong_rate": round(wrong.share(name), 4)}
            for name, clicks in wrong.answers.items()
        }

    def curve(self, stretches: int = STRETCHES) -> list[tuple[int, float]]:
        """(Clicks so far, clicks a row) for stretches of the work of the same number of rows."""
        clicks = self.state.clicks[self.state.done_order]
        clicks = clicks[clicks > 0]  # those of the file cost none
        if not len(clicks):
            return []
        parts = np.array_split(clicks, min(stretches, len(clicks)))
        ends = np.cumsum([part.sum() for part in parts])
        return [(int(end), round(float(part.mean()), 4)) for end, part in zip(ends, parts, strict=True)]

    def results(self) -> list[dict[str, Any]]:
        """Of each row of the table: row, label (None: none yet), belief, clicks, how it was found, by whom."""
        state, plan = self.state, self.plan
        if self.target >= 1.0:  # else the scores are those that progress() counts
            plan.score()
        accepted = set(self._accepted(plan.is_finished()).tolist())
        wrong = plan.wrong(np.arange(len(self.rows.keys)))
        entries: list[dict[str, Any]] = []
        for row in range(len(self.rows.keys)):
            answers = state.valid_answers(row)
            if state.done[row]:
                label, belief = int(state.label[row]), 1.0 - float(state.doubt[row])
                how = _how(label, answers, state.live) if label >= 0 else "none fits"
            else:
                label, belief = int(plan.model_label[row]), 1.0 - float(wrong[row])
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
        return [{"row": number, **entries[row]} for number, row in enumerate(self.rows.inverse)]

    def labels(self) -> Any:
        """The same as `results`, as a Polars frame."""
        need("logs")
        import polars

        return polars.DataFrame(self.results())

    def disagreements(self) -> list[dict[str, Any]]:
        """Rows about which not all answers can be true: number, row, label, answers (by, label, labels, hit)."""
        state, names = self.state, self.state.names
        conflicts = []
        for row in state.answers:
            answers = state.valid_answers(row)
            settled = any(answer.final for answer in answers)
            if not answers or settled or state.label[row] < 0 or possible(answers, state.live).any():
                continue
            first = int(self.rows.first[row])
            conflicts.append(
                {
                    "number": first,
                    "row": self.rows.shown(first, self.show),
                    "label": names[int(state.label[row])],
                    "answers": [
                        {
                            "by": answer.by,
                            "label": names[answer.label] if answer.label >= 0 else None,
                            "labels": [names[label] for label in answer.shown],
                            "hit": answer.hit,
                        }
                        for answer in answers
                    ],
                }
            )
        return conflicts

    def model(self, passes: int = 3) -> SetLogit:
        """A learner of one's own, taught with all labels that there are, in several passes; its set size is 1."""
        results = self.results()
        labels = [results[int(number)]["label"] for number in self.rows.first]
        learner = SetLogit(labels=self.state.live_names(), seed=self.seed)
        if self.rows.columns is not None:
            learner.use_columns(self.rows.columns)
        known = np.array([row for row, label in enumerate(labels) if label is not None], np.int64)
        random = np.random.default_rng(self.seed)
        for _ in range(passes):
            for row in random.permutation(known):
                given = Decision.given(self.state.rows.row(int(row)), [labels[row]])
                learner.update(given, label=labels[row])
        return learner

    def plot(self) -> Any:
        """Clicks a row as the work goes on, as an Altair chart."""
        need("plots")
        import altair

        points = [{"clicks": clicks, "clicks a row": rate} for clicks, rate in self.curve()]
        title = f"{self.rows.name}: clicks a row, as the work goes on"
        chart = altair.Chart(altair.InlineData(values=points), title=title)
        return chart.mark_line(point=True).encode(
            x=altair.X("clicks:Q", title="clicks so far"),
            y=altair.Y("clicks a row:Q", scale=altair.Scale(domainMin=0.0)),
        )


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
