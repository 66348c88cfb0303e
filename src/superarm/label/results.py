"""What a labelling has come to: how far it is, the label of each row, disagreements, a model."""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np

from superarm._extras import require_extra
from superarm._types import Frame, JsonObject
from superarm.decisions import Decision
from superarm.errors import InvalidInput, Unquoted
from superarm.label.answers import NO_LABEL, AnswerTable
from superarm.label.error_estimator import ErrorEstimator
from superarm.label.labelling_journal import LabellingSettings
from superarm.label.names import TABLE_AS_PERSON
from superarm.label.planner import MAX_WRONG_AT_1, QuestionPlanner
from superarm.label.rows_to_label import RowsToLabel
from superarm.label.state import LabellingState
from superarm.learners import SetLogit
from superarm.learners.locking import takes_turns

SECOND_OPINIONS = "second_opinion_share=, on the command line --second-opinion-share"
FIRST_CLICKS = 50  # before anything is estimated
CURVE_POINTS = 40
RECENT_ITEMS = 200  # items that tell how many clicks a row takes now


@dataclass(frozen=True, slots=True)
class LabellingProgress:
    """How far the work has come; as text, all of it in one line.

    Attributes:
        rows: of the table.
        labelled: rows that have a label: asked about, or accepted (none before there were enough audits).
        none_fits: rows of which people have denied every label.
        rows_asked: rows that people were asked about.
        clicks: answers so far; those that were taken back do not count.
        audits: how many rows were asked about that would have been accepted unasked.
        target: the share of labels that shall be right.
        wrong: the estimated share of wrong labels among those that there are; None before anything can be said.
        interval: of it, at 95 %.
        clicks_left: how many clicks are still needed, about; None before it can be estimated, and if it cannot be.
        finished: whether there is nothing more to ask.
        target_met: whether enough labels are right; if not at the end, answers are too doubtful, or too few.
        curve: (clicks so far, clicks a row) for each stretch of the work.
    """

    rows: int
    labelled: int
    none_fits: int
    rows_asked: int
    clicks: int
    audits: int
    target: float
    wrong: float | None
    interval: tuple[float, float] | None
    clicks_left: int | None
    finished: bool
    target_met: bool
    curve: list[tuple[int, float]]

    def __str__(self) -> str:
        parts = [f"{self.labelled:,} of {self.rows:,} labelled"]
        if self.none_fits:
            parts.append(f"{self.none_fits:,} that no label fits")
        if self.wrong is not None and self.interval is not None:
            low, high = (100 * end for end in self.interval)
            parts.append(f"{100 * self.wrong:.1f} % wrong [{low:.1f}, {high:.1f}]")
        audits = f", {self.audits:,} of them audits" if self.audits else ""
        text = ", ".join([*parts, f"{self.clicks:,} clicks{audits}"])
        rest = self.rows - self.labelled - self.none_fits
        if self.finished and not self.target_met:
            return f"{text}; {self.missed_text}"
        if self.finished or (self.clicks_left is None and self.clicks < FIRST_CLICKS):
            return text
        if self.clicks_left is None or not rest:
            return f"{text}; target not reached yet, {self.remaining_text}"
        return f"{text}; the remaining {rest:,} would take about {self.clicks_left:,}"

    @property
    def missed_text(self) -> str:
        """What was not reached at the end, and what would help; empty if nothing is missing."""
        if not self.finished or self.target_met:
            return ""
        if self.wrong is not None and self.wrong <= 1.0 - self.target:  # only the upper bound is above it
            unsure = f"by the estimate the target of {self.target:g} is met, but these answers are too few to be sure"
            return f"{unsure}. Second opinions would help ({SECOND_OPINIONS})"
        why = "too many answers are doubtful, or contradict each other"
        if self.target >= 1.0:
            why = f"by the estimate more than {1_000 * MAX_WRONG_AT_1:g} label in 1,000 may be wrong"
        missed = f"the target of {self.target:g} was missed: {why}"
        remedy = f"Second opinions would help ({SECOND_OPINIONS}), or the last word on such rows"
        return f"{missed}. {remedy}"

    @property
    def remaining_text(self) -> str:
        """How much there is still to do, in words; empty at the end."""
        if self.finished:
            return ""
        if self.clicks_left is not None:
            return f"about {self.clicks_left:,} click{'s' * (self.clicks_left != 1)} left"
        if self.clicks < FIRST_CLICKS:
            return "clicks left: too early to say"
        return "clicks left: cannot be estimated yet, doubtful rows are asked about until enough is sure"


class LabellingResults:
    """What the answers of a labelling come to; `Labelling` asks the questions.

    Args:
        rows: what is labelled.
        settings: of the labelling.
    """

    def __init__(self, rows: RowsToLabel, settings: LabellingSettings) -> None:
        self.lock = RLock()  # (learners/locking.py)
        self.rows, self.settings = rows, settings
        self.state = LabellingState(rows, settings)
        self.estimator = ErrorEstimator(self.state)
        self.planner = QuestionPlanner(self.state, self.estimator)

    @property
    @takes_turns
    def label_names(self) -> list[str]:
        """The labels that may be given."""
        return self.state.label_set.live_names()

    @takes_turns
    def progress(self) -> LabellingProgress:
        """Return how far the work has come."""
        state, rows_per_item = self.state, self.rows.rows_per_item
        clicks = int(state.clicks.sum())
        finished = self.planner.is_finished()
        rows_asked = int(rows_per_item[state.done & (state.label >= 0)].sum())
        none_fits = int(rows_per_item[state.done & (state.label == NO_LABEL)].sum())
        accepted = self.planner.accepted_items()
        labelled = rows_asked + int(rows_per_item[accepted].sum())
        wrong, interval, clicks_left = None, None, None
        if clicks >= FIRST_CLICKS or finished:
            low, high = self.estimator.interval(accepted)
            if labelled:
                wrong = min(1.0, self.estimator.expected_wrong_labels(accepted) / labelled)
                interval = float(low / labelled), float(min(1.0, high / labelled))
            clicks_left = 0 if finished else self._clicks_left()
        return LabellingProgress(
            rows=len(self.rows),
            labelled=labelled,
            none_fits=none_fits,
            rows_asked=rows_asked,
            clicks=clicks,
            audits=state.n_audits,
            target=self.settings.target,
            wrong=wrong,
            interval=interval,
            clicks_left=clicks_left,
            finished=finished,
            target_met=self.planner.is_target_met(),
            curve=self.curve(),
        )

    def _clicks_left(self) -> int | None:
        """Return how many clicks are left at the rate of the last items; None if only doubts are left."""
        state = self.state
        items_left = self.estimator.estimate.items_left
        audit_share = self.planner.audit_share
        learnt = max(1, state.n_ever_done)
        recent = state.items_ever_done()[-min(RECENT_ITEMS, -(-learnt // 4)) :]
        extra = float(state.clicks[recent].mean()) - 1.0 if len(recent) else 0.0  # beyond one click an item

        def clicks_for(items: float) -> float:
            return items + extra * learnt * float(np.log1p(items / learnt))  # fewer and fewer, like 1 / items

        items = float(np.count_nonzero(~state.done))
        if self.settings.target < 1.0:
            if items_left is None:
                return None
            needed = items_left / (1.0 - audit_share)
            items = min(items, max(needed, self.estimator.n_audits_needed() / audit_share))
        second_opinions = self.planner.n_second_opinions() + self.settings.second_opinion_share * items
        clicks = clicks_for(items) + second_opinions
        return max(1, round(clicks)) if clicks > 0.0 else None

    @takes_turns
    def people(self) -> dict[str, dict[str, float]]:
        """Return the clicks of each person, and wrong_rate, the estimated share of them that are wrong."""
        return {
            name: {"clicks": clicks, "wrong_rate": round(self.state.error_rates.wrong_share(name), 4)}
            for name, clicks in self.state.clicks_by.items()
            if clicks
        }

    @takes_turns
    def curve(self, points: int = CURVE_POINTS) -> list[tuple[int, float]]:
        """Return (clicks so far, clicks a row) for parts of the work with as many rows each."""
        clicks = self.state.clicks[self.state.items_ever_done()]
        clicks = clicks[clicks > 0]  # those of the table cost none
        if not len(clicks):
            return []
        parts = np.array_split(clicks, min(points, len(clicks)))
        ends = np.cumsum([part.sum() for part in parts])
        return [(int(end), round(float(part.mean()), 4)) for end, part in zip(ends, parts, strict=True)]

    @takes_turns
    def results(self) -> list[JsonObject]:
        """Return for each row of the table: row, label (None: none yet), belief, clicks, how it was found, by whom."""
        if self.settings.target >= 1.0:  # else the scores are those that progress() counts
            self.estimator.score(self.planner.order)
        items = np.arange(len(self.rows.keys))
        accepted = set(self.planner.accepted_items().tolist())
        errors = self.estimator.error_probabilities(items)
        by_item = [self._item_result(item, item in accepted, float(errors[item])) for item in items.tolist()]
        return [{"row": row, **by_item[item]} for row, item in enumerate(self.rows.item_of_row)]

    def _item_result(self, item: int, accepted: bool, error_probability: float) -> JsonObject:
        """Return the result of an item; ``accepted``, ``error_probability``: of its label by the model."""
        state, table = self.state, self.state.answer_table(item)
        if state.done[item]:
            label, belief = int(state.label[item]), 1.0 - float(state.doubt[item])
            how = _how(label, table) if label >= 0 else "none fits"
        else:
            label, belief = int(self.estimator.model_label[item]), 1.0 - error_probability
            how = "accepted" if accepted else ""
        return {
            "label": state.label_set.names[label] if how and label >= 0 else None,
            "belief": round(belief, 4),
            "clicks": int(state.clicks[item]),
            "how": how,
            "by": ", ".join(dict.fromkeys(answer.by for answer in table.answers if answer.by)),
        }

    def labels(self) -> Frame:
        """Return `results` as a Polars frame."""
        require_extra("logs")
        import polars

        return polars.DataFrame(self.results())

    @takes_turns
    def disagreements(self) -> list[JsonObject]:
        """Return the rows about which not all answers can be true: row, values, label, answers (by, labels, hit, …).

        The label is the most probable one; None if it is more probable that none fits.
        """
        state, names = self.state, self.state.label_set.names
        conflicts = []
        for item in state.answers:
            table = state.answer_table(item)
            if table.is_final.any() or table.none_possible or table.possible.any():
                continue
            row, label = int(self.rows.first_row[item]), int(state.label[item])
            name = None if label == NO_LABEL else names[label]
            conflict = {"row": row, "values": self.rows.values(row, self.settings.show), "label": name}
            conflicts.append(conflict | {"answers": [answer.to_dict(names) for answer in table.answers]})
        return conflicts

    @takes_turns
    def model(self, passes: int = 3) -> SetLogit:
        """Return a new learner that was taught with all labels that there are, in several passes; its set size is 1."""
        results = self.results()
        labels = [results[int(row)]["label"] for row in self.rows.first_row]
        learner = SetLogit(labels=self.label_names, seed=self.settings.seed)
        if self.rows.columns is not None:
            learner.use_columns(self.rows.columns)
        labelled = np.array([item for item, label in enumerate(labels) if label is not None], np.int64)
        if not len(labelled):
            raise InvalidInput.must(
                "rows", self.rows.name, "labelled, at least some, for a model", Unquoted("no label")
            )
        random = np.random.default_rng(self.settings.seed)
        for _ in range(passes):
            for item in random.permutation(labelled):
                decision = Decision.given(self.state.model.features.row(int(item)), [labels[item]])
                learner.update(decision, label=labels[item])
        return learner

    def plot(self) -> Any:
        """Return an Altair chart of clicks a row, as the work goes on."""
        require_extra("plots")
        import altair

        points = [{"clicks": clicks, "clicks a row": rate} for clicks, rate in self.curve()]
        title = f"{self.rows.name}: clicks a row, as the work goes on"
        chart = altair.Chart(altair.InlineData(values=points), title=title)
        return chart.mark_line(point=True).encode(
            x=altair.X("clicks:Q", title="clicks so far"),
            y=altair.Y("clicks a row:Q", scale=altair.Scale(domainMin=0.0)),
        )


def _how(label: int, table: AnswerTable) -> str:
    """Return how the label of an item was found."""
    final = [answer for answer in table.answers if answer.final]
    if final:
        return "file" if final[-1].by == TABLE_AS_PERSON else "final"
    n_named = sum(answer.named_label == label for answer in table.answers)
    if n_named:
        return "confirmed" if n_named > 1 else "named"
    return "excluded" if np.count_nonzero(table.possible) == 1 else "believed"
