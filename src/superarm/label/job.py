"""Labelling: ask and answer, until enough labels are right. Each answer is in the journal before it counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from superarm._extras import need
from superarm.errors import FeedbackError, InvalidInput
from superarm.label import results
from superarm.label.names import FILE, OWNER, check_known_person, check_name, check_names, check_person
from superarm.label.plan import Plan
from superarm.label.question import OpenQuestions, Question, choose_labels, reasons
from superarm.label.results import Progress
from superarm.label.rows import LabelRows
from superarm.label.state import State
from superarm.learners import SetLogit
from superarm.parameters import number, share, whole

__all__ = ["Labelling", "Progress", "Question"]


class Labelling:
    """Label rows with less than a click a row.

    Args:
        rows: a file (.csv, .tsv, .jsonl, .parquet, .npz), a folder of pictures or texts, a data frame, a list of dicts,
            or ``"digits"``.
        labels: their names; or the name of a column that holds some of them (those rows teach first).
        journal: where answers are kept, a file or a postgresql:// address; left out, in memory only.
        target: the share of labels that shall be right; 1 looks at every row.
        yes_no: ask "is it one of these?" in place of "which of these?".
        most: how many labels a question shows at most.
        show: the columns that people see; left out, all.
        twice: the share of rows that are asked about a second time, of somebody else where there are several.
        vectors: an .npy with a vector for each row.
        columns: how columns are to be taken: text, words, numbers, dates, leave_out, each a list of names.
        seed: for the order of rows.

    >>> job = Labelling("digits", labels=[str(digit) for digit in range(10)], target=0.98)
    >>> question = job.ask()
    >>> job.answer(question, none=True)
    >>> job.progress().clicks
    1
    """

    def __init__(
        self,
        rows: Any,
        *,
        labels: Sequence[str] | str | None = None,
        journal: str | Path | None = None,
        target: float = 0.99,
        yes_no: bool = False,
        most: int = 5,
        show: Sequence[str] = (),
        twice: float = 0.0,
        vectors: str | Path | None = None,
        columns: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        need("label")
        self.target = number("target", OWNER, target, 0.0)
        if not 0.5 <= self.target <= 1.0:
            raise InvalidInput.must("target", OWNER, "a share of right labels from 0.5 to 1", target)
        self.twice = share("twice", OWNER, twice)
        self.most, self.seed, self.yes_no = whole("most", OWNER, most, 1), seed, bool(yes_no)
        column = labels if isinstance(labels, str) else None
        self.rows = (
            rows
            if isinstance(rows, LabelRows)
            else LabelRows.read(rows, label=column, vectors=vectors, **(columns or {}))
        )
        self.show = self.rows.check_shown(show)
        self.rows.check_columns()
        first = self.rows.known_labels() if labels is None or column else check_names(labels)
        from superarm.label.journal import LabelJournal

        options = {"yes_no": self.yes_no, "seed": seed}
        self.journal = LabelJournal(journal, self.rows, first, options)
        self._begin()

    def _begin(self) -> None:
        """Make everything of what the journal says."""
        names = self.journal.first_labels
        features = self.rows.features(len(names))
        self.state = State(features, names, target=self.target, yes_no=self.yes_no, seed=self.seed)
        self.plan = Plan(self.state, self.rows.copies, target=self.target, twice=self.twice, seed=self.seed)
        self._open = OpenQuestions()
        self._last: dict[str, int] = {}  # the row that each person answered last
        self._asked = 0
        self.journal.replay(self.state)
        if self.journal.is_new:
            self.journal.keep_target(self.target)
            self._teach_known()
        self.plan.score()

    def _teach_known(self) -> None:
        """Labels that the table has already."""
        known: dict[int, str] = {}
        for row, label in zip(self.rows.inverse, self.rows.known, strict=True):
            if label is not None:
                known.setdefault(int(row), label)
        order = [row for row in self.plan.order if int(row) in known]
        self.journal.answers(
            [(self.rows.keys[row], {"by": FILE, "label": known[int(row)], "final": True}) for row in order]
        )
        self._follow()

    def _follow(self) -> None:
        self.journal.follow(self.state)

    # ------------------------------------------------------------ asking

    @property
    def label_names(self) -> list[str]:
        """The labels that may be given."""
        return [name for name, live in zip(self.state.names, self.state.live, strict=True) if live]

    def ask(self, by: str = "") -> Question | None:
        """The next question for somebody; None when enough labels are right, or all rows are with others.

        Args:
            by: who is asked.
        """
        check_person(by)
        self._follow()
        if by in self.state.left_out:
            return None
        question = self._open.of(by)
        if question is not None:  # the page was loaded again, say
            return question
        busy = self.busy()
        last = self._last.get(by)
        if last is not None and last not in busy and self._is_begun(last):
            return self._question(last, by, audit=False)
        if self.plan.is_finished(busy):
            return None
        choice = self.plan.next(busy, by)
        return None if choice is None else self._question(choice[0], by, audit=choice[1])

    def busy(self) -> set[int]:
        """Rows that somebody is being asked about."""
        return {int(self.rows.inverse[number]) for number in self._open.numbers()}

    def _is_begun(self, row: int) -> bool:
        """Whether questions about the row have not led to a label yet."""
        state = self.state
        answers = state.answers.get(row, [])
        return bool(answers) and not state.looked[row] and answers[-1].hit is not None

    def _question(self, row: int, by: str, *, audit: bool) -> Question:
        state = self.state
        belief = state.belief(row)
        labels = choose_labels(belief, state.live, self.most, self.yes_no)
        first = int(self.rows.first[row])
        self._asked += 1
        question = Question(
            id=f"{self.rows.keys[row]}-{self.journal.seq}-{self._asked}",
            number=first,
            row=self.rows.shown(first, self.show),
            labels=[state.names[label] for label in labels],
            beliefs=[round(float(belief[label]), 6) for label in labels],
            yes_no=self.yes_no,
            again=bool(state.clicks[row]),
            audit=audit,
            picture=self.rows.pictures is not None,
        )
        self._open.put(question, by)
        return question

    def picture(self, number: int) -> tuple[bytes, str] | None:
        """The picture of a row of the table, and its media type.

        Args:
            number: of the row, from 0.
        """
        if not 0 <= number < len(self.rows):
            return None
        return self.rows.picture(number)

    def reasons(self, question: Question, most: int = 60) -> dict[str, list[tuple[str, float]]]:
        """What the words of a row's texts say of the best label: by how much each raises its log-probability.

        By column, for the first words of each text; found by leaving out one word after the other.

        Args:
            question: what `ask` gave.
            most: words of a text that are looked at.
        """
        return reasons(self, question, most)

    # ------------------------------------------------------------ answering

    def answer(
        self,
        question: Question | str,
        *,
        label: str | None = None,
        none: bool = False,
        yes: bool | None = None,
        by: str = "",
    ) -> None:
        """Answer a question: which label it is, that it is none of those shown, or yes or no. Durable when it returns.

        Args:
            question: what `ask` gave, or its id.
            label: the right label; it may be one that was not shown.
            none: none of the shown labels is right.
            yes: with ``yes_no``, whether one of the shown labels is right.
            by: who says so.
        """
        given = [one for one in (label is not None, bool(none), yes is not None) if one]
        if len(given) != 1:
            raise FeedbackError.must(
                "answer", OWNER, "one of label=, none=True, yes=", f"{len(given)} of them"
            )
        key = question if isinstance(question, str) else question.id
        answer = (label, none, yes, by)
        asked = self._open.find(key, by)
        if asked is None:
            self._open.check_repeated(key, answer)
            return
        if yes is not None and not asked.yes_no:
            raise FeedbackError.must("yes", OWNER, "left out, but for questions of yes or no", yes)
        if label is not None:
            self._live(label)
        body: dict[str, Any] = {"by": by, "labels": asked.labels, "audit": asked.audit}
        if label is not None:
            body |= {"hit": label in asked.labels, "label": label}
        else:
            body["hit"] = bool(yes)
        self._keep(asked, by, body, answer)
        self.plan.answered()

    def skip(self, question: Question | str, by: str = "") -> None:
        """Ask about something else; the row comes again at the end.

        Args:
            question: what `ask` gave, or its id.
            by: who skips it.
        """
        key = question if isinstance(question, str) else question.id
        asked = self._open.find(key, by)
        if asked is not None:
            self._keep(asked, by, {"by": by, "labels": asked.labels})
            self._last.pop(by, None)

    def _keep(
        self, asked: Question, by: str, body: dict[str, Any], answer: tuple[Any, ...] | None = None
    ) -> None:
        row = int(self.rows.inverse[asked.number])
        self.journal.answers([(self.rows.keys[row], body)])
        self._open.close(asked.id, answer)
        self._last[by] = row
        self._follow()

    def undo(self, by: str = "") -> Question | None:
        """Take back somebody's last answer, and ask again; None if there is none.

        Args:
            by: whose answer.
        """
        self._follow()
        own = [(answer.seq, row) for row, answers in self.state.answers.items() for answer in answers
               if answer.by == by and not answer.final]  # fmt: skip
        if not own:
            return None
        seq, row = max(own)
        self.journal.take_back(self.rows.keys[row], seq, by)
        self._follow()
        self._open.drop(by, {int(self.rows.first[row])})
        self._last[by] = row
        return self._question(row, by, audit=False)

    def settle(self, number: int, label: str, by: str = "") -> None:
        """Say what the label of a row of the table is, whatever was answered before.

        Args:
            number: of the row, from 0.
            label: the right one.
            by: who says so.
        """
        if not 0 <= number < len(self.rows):
            raise InvalidInput.must("row", OWNER, f"a number from 0 to {len(self.rows) - 1}", number)
        body = {"by": check_person(by), "label": self._live(label), "hit": True, "final": True}
        self.journal.answers([(self.rows.keys[int(self.rows.inverse[number])], body)])
        self._follow()

    def add_answers(self, answers: Sequence[dict[str, Any]]) -> int:
        """Take over answers from elsewhere: each with row (a number), by, and label, or labels and hit; how many."""
        bodies = []
        for one in answers:
            label, labels = one.get("label"), one.get("labels")
            for name in [*([label] if label is not None else ()), *(labels or ())]:
                self._live(name)
            body = {
                "by": check_person(one.get("by", "")),
                "labels": labels,
                "hit": one.get("hit", label is not None),
                "label": label,
            }
            row = int(self.rows.inverse[one["row"]])
            if not self._was_said(row, body):
                bodies.append((self.rows.keys[row], body))
        self.journal.answers(bodies)
        self._follow()
        return len(bodies)

    def _was_said(self, row: int, body: dict[str, Any]) -> bool:
        """Whether this person has said the same about the row before: the same file, once more."""
        numbers = self.state.numbers
        shown = tuple(numbers[name] for name in body["labels"] or ())
        label = -1 if body["label"] is None else numbers[body["label"]]
        answers = self.state.answers.get(row, ())
        return any(
            (a.by, a.shown, a.hit, a.label) == (body["by"], shown, body["hit"], label) for a in answers
        )

    # ------------------------------------------------------------ labels and people

    def add_label(self, name: str, by: str = "") -> None:
        """A new label; or one that was retired, which comes back with its answers.

        Args:
            name: of it.
            by: who asks for it.
        """
        self._change({"what": "add label", "label": self._new(name), "by": by})

    def rename_label(self, old: str, new: str, by: str = "") -> None:
        """Call a label something else.

        Args:
            old: its name.
            new: its new name.
            by: who asks for it.
        """
        self._change({"what": "rename label", "label": self._live(old), "to": self._new(new), "by": by})

    def merge_labels(self, old: str, into: str, by: str = "") -> None:
        """One label becomes another: all its rows are the other's.

        Args:
            old: the one that is gone.
            into: the other.
            by: who asks for it.
        """
        if old == into:
            raise InvalidInput.must("label", OWNER, "two different ones", old)
        if len(self.label_names) <= 2:
            raise InvalidInput.must("labels", OWNER, "at least two, also without it", old)
        self._change({"what": "merge label", "label": self._live(old), "to": self._live(into), "by": by})

    def retire_label(self, name: str, by: str = "") -> None:
        """A label is gone; its rows are asked about again.

        Args:
            name: of it.
            by: who asks for it.
        """
        if len(self.label_names) <= 2:
            raise InvalidInput.must("labels", OWNER, "at least two, also without it", name)
        self._change({"what": "retire label", "label": self._live(name), "by": by})

    def leave_out(self, person: str, by: str = "") -> None:
        """Somebody's answers count no more.

        Args:
            person: who.
            by: who asks for it.
        """
        check_known_person(person, self.state.people(), "person", OWNER)
        self._change({"what": "leave out", "person": person, "by": by})

    def take_in(self, person: str, by: str = "") -> None:
        """Somebody's answers count again.

        Args:
            person: who.
            by: who asks for it.
        """
        check_known_person(person, self.state.left_out, "person", OWNER)
        self._change({"what": "take in", "person": person, "by": by})

    def _live(self, name: str) -> str:
        if name not in self.label_names:
            wanted = "one of the labels (or add it)"
            raise InvalidInput.must("label", OWNER, wanted, name, among=self.label_names)
        return name

    def _new(self, text: str) -> str:
        name = check_name(text)
        if name in self.label_names:
            raise InvalidInput.must("label", OWNER, "a new name", name)
        return name

    def _change(self, change: dict[str, Any]) -> None:
        check_person(change["by"])
        self.journal.change(change)
        self._follow()
        if change["what"] != "add label":  # a question that is open stays one when there is a label more
            self._open.clear()
        self.plan.score()

    # ------------------------------------------------------------ what came out (results.py)

    def progress(self) -> Progress:
        """How far the work has come."""
        return results.progress(self)

    def people(self) -> dict[str, dict[str, float]]:
        """Of each person, clicks and wrong_rate, the estimated share of them that are wrong."""
        return results.people(self)

    def curve(self, stretches: int) -> list[tuple[int, float]]:
        """(Clicks so far, clicks a row) for stretches of the work of the same number of rows."""
        return results.curve(self.state, stretches)

    def results(self) -> list[dict[str, Any]]:
        """Of each row of the table: row, label (None: none yet), belief, clicks, how it was found, by whom."""
        return results.results(self)

    def labels(self) -> Any:
        """The same as `results`, as a Polars frame."""
        need("logs")
        import polars

        return polars.DataFrame(self.results())

    def disagreements(self) -> list[dict[str, Any]]:
        """Rows whose answers contradict each other: number, row, label, answers (by, label, labels, hit)."""
        return results.disagreements(self)

    def model(self, passes: int = 3) -> SetLogit:
        """A learner of one's own, taught with all labels that there are, in several passes; its set size is 1."""
        return results.model(self, passes)

    def plot(self) -> Any:
        """Clicks a row as the work goes on, as an Altair chart."""
        return results.plot(self)

    def widget(self, by: str = "") -> Any:
        """Answer questions here: buttons in a notebook that has ipywidgets, plain text anywhere else.

        Args:
            by: who answers.
        """
        from superarm.label.notebook import label_here

        return label_here(self, by)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def __enter__(self) -> Labelling:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Labelling({self.rows.name!r}: {self.progress()})"
