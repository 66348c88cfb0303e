"""Labelling: ask and answer, until enough labels are right. Each answer is in the journal before it counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from superarm._extras import need
from superarm.errors import FeedbackError, InvalidInput
from superarm.label.names import FILE, OWNER, check_known_person, check_name, check_names, check_person
from superarm.label.plan import Plan
from superarm.label.question import OpenQuestions, Question, choose_labels
from superarm.label.results import Results
from superarm.label.rows import LabelRows
from superarm.label.state import State
from superarm.parameters import check_int, check_number, check_share


class Labelling(Results):
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
        read_only: write nothing to the journal, which others may be using: there is no answering then.

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
        read_only: bool = False,
    ) -> None:
        need("label")
        self.target = check_number("target", OWNER, target, 0.0)
        if not 0.5 <= self.target <= 1.0:
            raise InvalidInput.must("target", OWNER, "a share of right labels from 0.5 to 1", target)
        self.twice = check_share("twice", OWNER, twice)
        self.most, self.seed, self.yes_no = check_int("most", OWNER, most, 1), seed, bool(yes_no)
        column = labels if isinstance(labels, str) else None
        if not isinstance(rows, LabelRows):
            rows = LabelRows.read(rows, label=column, vectors=vectors, **(columns or {}))
        self.rows, self.show = rows, rows.check_shown(show)
        rows.check_columns()
        names = rows.known_labels() if labels is None or column else check_names(labels)
        from superarm.label.history import History
        from superarm.label.journal import LabelJournal

        options = {"yes_no": self.yes_no, "seed": seed}
        self.journal = LabelJournal(journal, rows, names, options, read_only=read_only)
        names = self.journal.first_labels
        features = rows.features(len(names))
        self.state = State(features, names, target=self.target, yes_no=self.yes_no, seed=seed)
        self.plan = Plan(self.state, rows.copies, target=self.target, twice=self.twice, seed=seed)
        self._open = OpenQuestions()
        self._asked = 0  # questions
        self.history = History(self.journal, rows, self.state, self.plan)
        self._follow()
        self.journal.add_labels(self.state.numbers)
        if self.journal.is_new:
            self.journal.keep_aims(self.target, self.twice)
            self._keep_known()
        self._follow()

    def _keep_known(self) -> None:
        """Keep the labels that the table has already; rows for which it has several are asked about."""
        known = self.rows.known_by_row()
        order = [row for row in self.plan.order.tolist() if known.get(row) is not None]
        self.journal.answers(
            [(self.rows.keys[row], {"by": FILE, "label": known[row], "final": True}) for row in order]
        )

    def _follow(self) -> None:
        self.history.follow()

    # ------------------------------------------------------------ asking

    @property
    def label_names(self) -> list[str]:
        """The labels that may be given."""
        return self.state.live_names()

    def ask(self, by: str = "") -> Question | None:
        """The next question for somebody; None when enough labels are right, or all rows are with others.

        Args:
            by: who is asked.
        """
        check_person(by)
        self._follow()
        if by in self.state.left_out:
            return None
        question = self._open.current(by)
        if question is not None:  # the page was loaded again, say
            return question
        busy = self._open.rows()
        last = self.history.last.get(by)
        if last is not None and last not in busy and (by in self.history.taken_back or self._is_begun(last)):
            return self._question(last, by, audit=False)
        if self.plan.is_finished():
            return None
        choice = self.plan.next(busy, by)
        return None if choice is None else self._question(choice[0], by, audit=choice[1])

    def _is_begun(self, row: int) -> bool:
        """Whether questions about the row have not led to a label yet."""
        state = self.state
        answers = state.answers.get(row, [])
        return bool(answers) and not state.done[row] and answers[-1].hit is not None

    def _question(self, row: int, by: str, *, audit: bool) -> Question:
        state = self.state
        belief = state.belief(row)
        labels = choose_labels(belief, state.left(row, belief), self.most, self.yes_no)
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
        self._open.put(question, by, row)
        return question

    def picture(self, number: int) -> tuple[bytes, str] | None:
        """The picture of a row of the table, and its media type.

        Args:
            number: of the row, from 0.
        """
        if not 0 <= number < len(self.rows):
            return None
        return self.rows.picture(number)

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
        given = [label is not None, none, yes is not None].count(True)
        if given != 1:
            raise FeedbackError.must("answer", OWNER, "one of label=, none=True, yes=", f"{given} of them")
        key, answer = _id(question), (label, none, yes, by)
        asked = self._open.find(key, by)
        if asked is None:
            self._open.check_repeated(key, answer)
            return
        if yes is not None and not asked.yes_no:
            raise FeedbackError.must("yes", OWNER, "left out, but for questions of yes or no", yes)
        hit = bool(yes) if label is None else self._live(label) in asked.labels
        self._keep(
            asked,
            {"by": by, "labels": asked.labels, "audit": asked.audit, "hit": hit, "label": label},
            answer,
        )

    def skip(self, question: Question | str, by: str = "") -> None:
        """Ask about something else; the row comes again at the end.

        Args:
            question: what `ask` gave, or its id.
            by: who skips it.
        """
        asked = self._open.find(_id(question), by)
        if asked is not None:
            self._keep(asked, {"by": by, "labels": asked.labels})

    def _keep(self, asked: Question, body: dict[str, Any], answer: tuple[Any, ...] | None = None) -> None:
        row = int(self.rows.inverse[asked.number])
        self.journal.answers([(self.rows.keys[row], body)])
        self._open.close(asked.id, answer)
        self._follow()

    def undo(self, by: str = "") -> Question | None:
        """Take back somebody's last answer, or what they settled last, and ask again; None if there is none.

        Args:
            by: whose answer.
        """
        self._follow()
        own = [(answer.seq, row) for row, answers in self.state.answers.items() for answer in answers
               if answer.by == by]  # fmt: skip
        if not own:
            return None
        seq, row = max(own)
        self.journal.take_back(self.rows.keys[row], seq, by)
        self._follow()
        self._open.drop(by, row)
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
        """Take over answers from elsewhere; how many of them are new.

        Args:
            answers: each with row (a number), by (left out: nobody), and label, or labels and hit; final settles it.
        """
        bodies = []
        for given in answers:
            row, label, shown = (
                int(self.rows.inverse[given["row"]]),
                given.get("label"),
                given.get("labels") or [],
            )
            by, hit = check_person(given.get("by", "")), given.get("hit", label is not None)
            numbers = [self.state.numbers[self._live(name)] for name in shown]
            number = -1 if label is None else self.state.numbers[self._live(label)]
            before = [(a.by, a.shown, a.hit, a.label) for a in self.state.answers.get(row, ())]
            if (by, tuple(numbers), hit, number) not in before:  # else it is the same file, once more
                content = {"labels": shown, "hit": hit, "label": label, "final": given.get("final", False)}
                bodies.append((self.rows.keys[row], {"by": by, **content}))
        self.journal.answers(bodies)
        self._follow()
        return len(bodies)

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
        self._change({"what": "merge label", "label": self._spare(old), "to": self._live(into), "by": by})

    def retire_label(self, name: str, by: str = "") -> None:
        """A label is gone; its rows are asked about again.

        Args:
            name: of it.
            by: who asks for it.
        """
        self._change({"what": "retire label", "label": self._spare(name), "by": by})

    def leave_out(self, person: str, by: str = "") -> None:
        """Somebody's answers count no more.

        Args:
            person: who.
            by: who asks for it.
        """
        check_known_person(person, self.state.people() - {""}, "person", OWNER)
        self._change({"what": "leave out", "person": person, "by": by})

    def take_in(self, person: str, by: str = "") -> None:
        """Somebody's answers count again.

        Args:
            person: who.
            by: who asks for it.
        """
        check_known_person(person, self.state.left_out, "person", OWNER, "nobody is left out")
        self._change({"what": "take in", "person": person, "by": by})

    def _live(self, name: str) -> str:
        if name not in self.label_names:
            wanted = "one of the labels (or add it)"
            raise InvalidInput.must("label", OWNER, wanted, name, choices=self.label_names)
        return name

    def _spare(self, name: str) -> str:
        if len(self.label_names) <= 2:
            raise InvalidInput.must("labels", OWNER, "at least two, also without it", name)
        return self._live(name)

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


def _id(question: Question | str) -> str:
    return question if isinstance(question, str) else question.id
