"""What a labelling has come to: how far it is, the label of each row, disagreements, a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from superarm._extras import need
from superarm._types import Array, Frame, JsonObject
from superarm.decisions import Decision
from superarm.label.belief import Answer, possible_labels
from superarm.label.names import FILE
from superarm.label.plan import Plan
from superarm.label.progress import FIRST_CLICKS, Progress
from superarm.label.rows import LabelRows
from superarm.label.state import State
from superarm.label.wrong_labels import WrongLabels
from superarm.learners import SetLogit

CURVE_POINTS = 40
RECENT = 200  # items that tell how many clicks a row takes now


class Results:
    """The part of a `Labelling` that tells what came out."""

    rows: LabelRows
    state: State
    plan: Plan
    wrong_labels: WrongLabels
    target: float
    seed: int
    show: tuple[str, ...]

    def progress(self) -> Progress:
        """How far the work has come."""
        state, copies = self.state, self.rows.copies
        clicks, finished = int(state.clicks.sum()), self.plan.is_finished()
        rows_asked = int(copies[state.done & (state.label >= 0)].sum())
        accepted = self.plan.accepted_items()
        labelled = rows_asked + int(copies[accepted].sum())
        wrong, interval, clicks_left = None, None, None
        if clicks >= FIRST_CLICKS or finished:
            low, high = self.wrong_labels.interval(accepted)
            if labelled:
                wrong = min(1.0, self.wrong_labels.n_wrong(accepted) / labelled)
                interval = float(low / labelled), float(min(1.0, high / labelled))
            clicks_left = 0 if finished else self._clicks_left()
        return Progress(
            rows=len(self.rows),
            labelled=labelled,
            rows_asked=rows_asked,
            clicks=clicks,
            audits=state.n_audits,
            target=self.target,
            wrong=wrong,
            interval=interval,
            clicks_left=clicks_left,
            finished=finished,
            curve=self.curve(),
        )

    def _clicks_left(self) -> int | None:
        """Until enough items were asked about, at the rate of the last ones; None if they were, and doubts remain."""
        state, estimate, audit_share = self.state, self.wrong_labels.estimate, self.plan.audit_share
        learnt = max(1, len(state.done_order))
        recent = state.done_order[-min(RECENT, -(-learnt // 4)) :]
        extra = float(state.clicks[recent].mean()) - 1.0 if recent else 0.0  # beyond one click an item

        def clicks_for(items: float) -> float:
            return items + extra * learnt * float(np.log1p(items / learnt))  # fewer and fewer, like 1 / items

        clicks = clicks_for(int(np.count_nonzero(~state.done)))
        if self.target < 1.0:
            if estimate.items_left is None:
                return None
            needed = clicks_for(estimate.items_left / (1.0 - audit_share))
            clicks = min(clicks, max(needed, self.wrong_labels.n_audits_missing() / audit_share))
        return max(1, round(clicks)) if clicks > 0.0 else None

    def people(self) -> dict[str, dict[str, float]]:
        """Of each person, clicks and wrong_rate, the estimated share of them that are wrong."""
        wrong = self.state.wrong_answers
        return {
            name: {"clicks": clicks, "wrong_rate": round(wrong.wrong_share(name), 4)}
            for name, clicks in wrong.answers.items()
        }

    def curve(self, points: int = CURVE_POINTS) -> list[tuple[int, float]]:
        """(Clicks so far, clicks a row) for parts of the work with as many rows each."""
        clicks = self.state.clicks[self.state.done_order]
        clicks = clicks[clicks > 0]  # those of the table cost none
        if not len(clicks):
            return []
        parts = np.array_split(clicks, min(points, len(clicks)))
        ends = np.cumsum([part.sum() for part in parts])
        return [(int(end), round(float(part.mean()), 4)) for end, part in zip(ends, parts, strict=True)]

    def results(self) -> list[JsonObject]:
        """Of each row of the table: row, label (None: none yet), belief, clicks, how it was found, by whom."""
        if self.target >= 1.0:  # else the scores are those that progress() counts
            self.wrong_labels.score(self.plan.order)
        items = np.arange(len(self.rows.keys))
        accepted = set(self.plan.accepted_items().tolist())
        wrong = self.wrong_labels.chances(items)
        by_item = [self._item_result(item, item in accepted, float(wrong[item])) for item in items.tolist()]
        return [{"row": row, **by_item[item]} for row, item in enumerate(self.rows.item_of_row)]

    def _item_result(self, item: int, accepted: bool, wrong: float) -> JsonObject:
        """Of an item whose label is accepted, or not, and whose label by the model has this chance to be wrong."""
        state, answers = self.state, self.state.valid_answers(item)
        if state.done[item]:
            label, belief = int(state.label[item]), 1.0 - float(state.doubt[item])
            how = _how(label, answers, state.label_set.live) if label >= 0 else "none fits"
        else:
            label, belief = int(self.wrong_labels.model_label[item]), 1.0 - wrong
            how = "accepted" if accepted else ""
        return {
            "label": state.label_set.names[label] if how and label >= 0 else None,
            "belief": round(belief, 4),
            "clicks": int(state.clicks[item]),
            "how": how,
            "by": ", ".join(dict.fromkeys(answer.by for answer in answers if answer.by)),
        }

    def labels(self) -> Frame:
        """The same as `results`, as a Polars frame."""
        need("logs")
        import polars

        return polars.DataFrame(self.results())

    def disagreements(self) -> list[JsonObject]:
        """Rows about which not all answers can be true: row, values, label, answers (by, label, labels, hit)."""
        state, names = self.state, self.state.label_set.names
        conflicts = []
        for item in state.answers:
            answers = state.valid_answers(item)
            settled = any(answer.final for answer in answers)
            if (
                not answers
                or settled
                or state.label[item] < 0
                or possible_labels(answers, state.label_set.live).any()
            ):
                continue
            row = int(self.rows.first_row[item])
            in_words = [
                {
                    "by": answer.by,
                    "label": names[answer.label] if answer.label >= 0 else None,
                    "labels": [names[label] for label in answer.shown],
                    "hit": answer.hit,
                }
                for answer in answers
            ]
            values, label = self.rows.values(row, self.show), names[int(state.label[item])]
            conflicts.append({"row": row, "values": values, "label": label, "answers": in_words})
        return conflicts

    def model(self, passes: int = 3) -> SetLogit:
        """A learner of one's own, taught with all labels that there are, in several passes; its set size is 1."""
        results = self.results()
        labels = [results[int(row)]["label"] for row in self.rows.first_row]
        learner = SetLogit(labels=self.state.label_set.live_names(), seed=self.seed)
        if self.rows.columns is not None:
            learner.use_columns(self.rows.columns)
        labelled = np.array([item for item, label in enumerate(labels) if label is not None], np.int64)
        random = np.random.default_rng(self.seed)
        for _ in range(passes):
            for item in random.permutation(labelled):
                decision = Decision.given(self.state.model.features.row(int(item)), [labels[item]])
                learner.update(decision, label=labels[item])
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
    """How the label of an item was found."""
    final = [answer for answer in answers if answer.final]
    if final:
        return "file" if final[-1].by == FILE else "settled"
    n_named = sum(
        answer.label == label or (bool(answer.hit) and answer.shown == (label,)) for answer in answers
    )
    if n_named:
        return "confirmed" if n_named > 1 else "named"
    return "excluded" if np.count_nonzero(possible_labels(answers, live)) == 1 else "believed"
