"""How far a labelling has come, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_CLICKS = 50  # before anything is estimated


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come.

    Attributes:
        rows: of the table.
        labelled: rows that have a label: asked about, or accepted (none before there were enough audits).
        rows_asked: those that somebody was asked about.
        clicks: answers so far.
        audits: those of them about rows that would have been accepted unasked.
        target: the share of labels that shall be right.
        wrong: the estimated share of wrong labels among those that there are; None before anything can be said.
        interval: of it, at 95 %.
        clicks_left: those that are still needed, about; None before anything can be said, and if no number can.
        finished: whether there is nothing more to ask; ``wrong`` and ``interval`` say whether the target is met.
        curve: (clicks so far, clicks a row) for each stretch of the work.
    """

    rows: int
    labelled: int
    rows_asked: int
    clicks: int
    audits: int
    target: float
    wrong: float | None
    interval: tuple[float, float] | None
    clicks_left: int | None
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
        if self.clicks_left is None and self.clicks >= FIRST_CLICKS:
            return f"{text}; {self.outlook}"
        if self.finished or self.clicks_left is None or not rest:
            return text
        return f"{text}; the remaining {rest:,} would take about {self.clicks_left:,}"

    @property
    def outlook(self) -> str:
        """How much there is still to do; empty at the end."""
        if self.finished:
            return ""
        if self.clicks_left is not None:
            return f"about {self.clicks_left:,} click{'s' * (self.clicks_left != 1)} left"
        if self.clicks < FIRST_CLICKS:
            return "clicks left: too early to say"
        return "clicks left: no number can be told, doubtful rows are asked about until enough is sure"

    def __str__(self) -> str:
        return self.sentence
