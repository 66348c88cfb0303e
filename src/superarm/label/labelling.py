"""Labelling: ask and answer, until enough labels are right. Each answer is in the journal before it counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from superarm._extras import need
from superarm._types import Frame, JsonObject
from superarm.data.column import ColumnKinds
from superarm.errors import FeedbackError, InvalidInput
from superarm.label.names import FILE, OWNER, check_known_person, check_label, check_labels, check_person
from superarm.label.plan import Plan
from superarm.label.question import OpenQuestions, Question, Reply, choose_labels
from superarm.label.results import Results
from superarm.label.rows import LabelRows
from superarm.label.state import State
from superarm.label.wrong_labels import WrongLabels
from superarm.parameters import check_int, check_number, check_share


class Labelling(Results):
    """Label rows with less than a click a row.

    Args:
        rows: a file (.csv, .tsv, .jsonl, .parquet, .npz), a folder of pictures or texts, a data frame, a list of dicts,
            or ``"digits"``.
        labels: their names; or the name of a column that holds some of them (those rows teach first).
        journal: where answers are kept, a file or a postgresql:// address; left out, in memory only.
        target: the share of labels that shall be right; 1 looks at every row. Left out, as in the journal, or 0.99.
        yes_no: ask "is it one of these?" in place of "which of these?".
        most: how many labels a question shows at most.
        show: the columns that people see; left out, all.
        twice: the share of rows that are asked about a second time, of somebody else where there are several.
            Left out, as in the journal, or 0.
        vectors: an .npy with a vector for each row.
        kinds: what some columns of the table are: ``{"note": "text", "id": "left out"}``.
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
        rows: Frame | str | Path,
        *,
        labels: Sequence[str] | str | None = None,
        journal: str | Path | None = None,
        target: float | None = None,
        yes_no: bool = False,
        most: int = 5,
        show: Sequence[str] = (),
        twice: float | None = None,
        vectors: str | Path | None = None,
        kinds: ColumnKinds | None = None,
        seed: int = 0,
        read_only: bool = False,
    ) -> None:
        need("label")
        from superarm.label.journal import LabelJournal, LabelSettings
        from superarm.label.projector import Projector

        if target is not None:
            target = check_number("target", OWNER, target, 0.0)
            if not 0.5 <= target <= 1.0:
                raise InvalidInput.must("target", OWNER, "a share of right labels from 0.5 to 1", target)
        if twice is not None:
            twice = check_share("twice", OWNER, twice)
        self.most, self.seed, self.yes_no = check_int("most", OWNER, most, 1), seed, bool(yes_no)
        column = labels if isinstance(labels, str) else None
        if not isinstance(rows, LabelRows):
            rows = LabelRows.read(rows, label=column, vectors=vectors, kinds=kinds)
        self.rows, self.show = rows, rows.check_columns(show)
        names = rows.label_names() if labels is None or column else check_labels(labels)
        settings = LabelSettings(names, self.yes_no, seed)
        self.journal = LabelJournal(journal, rows, settings, target, twice, read_only=read_only)
        self.target, twice = self.journal.target, self.journal.twice
        features = rows.features(len(self.journal.labels))
        self.state = State(features, self.journal.labels, target=self.target, yes_no=self.yes_no, seed=seed)
        self.wrong_labels = WrongLabels(self.state, rows.copies, self.target)
        self.plan = Plan(self.state, self.wrong_labels, target=self.target, twice=twice, seed=seed)
        self._projector = Projector(rows.item_of_key, self.state, self.plan)
        self._open, self._n_questions = OpenQuestions(), 0
        self._catch_up()
        if not read_only:
            self._keep_table_labels(names or ())

    def _keep_table_labels(self, names: Sequence[str]) -> None:
        """Keep labels that are new; of a new journal, also those that the table has for its rows.

        Items for which the table has several labels are asked about.
        """
        for name in names:
            if name not in self.state.label_set.numbers:
                self.journal.change({"what": "add label", "label": name, "by": ""})
        if self.journal.is_new:
            labels = self.rows.label_by_item()
            items = [item for item in self.plan.order.tolist() if labels.get(item) is not None]
            self._keep((item, FILE, {"label": labels[item], "final": True}) for item in items)
        self._catch_up()

    def _catch_up(self) -> None:
        """Apply the events that have come since: also those of other processes."""
        self._projector.apply(self.journal.new_events())

    # ------------------------------------------------------------ asking

    @property
    def label_names(self) -> list[str]:
        """The labels that may be given."""
        return self.state.label_set.live_names()

    def ask(self, by: str = "") -> Question | None:
        """The next question for ``by``; None when enough labels are right, or all rows are with others."""
        check_person(by)
        self._catch_up()
        if by in self.state.excluded_people:
            return None
        question = self._open.get(by)
        if question is not None:  # the page was loaded again, say
            return question
        busy, last = self._open.items(), self._projector.last_item.get(by)
        if last is not None and last not in busy and (by in self._projector.undone or self._is_begun(last)):
            return self._question(last, by, audit=False)
        if self.plan.is_finished():
            return None
        choice = self.plan.next_item(busy, by)
        return None if choice is None else self._question(choice[0], by, audit=choice[1])

    def _is_begun(self, item: int) -> bool:
        """Whether questions about the item have not led to a label yet."""
        answers = self.state.answers.get(item, [])
        return bool(answers) and not self.state.done[item] and answers[-1].hit is not None

    def _question(self, item: int, by: str, *, audit: bool) -> Question:
        belief, names = self.state.belief(item), self.state.label_set.names
        labels = choose_labels(belief, self.state.showable(item, belief), self.most, self.yes_no)
        row = int(self.rows.first_row[item])
        self._n_questions += 1
        question = Question(
            id=f"{self.rows.keys[item]}-{self.journal.seq}-{self._n_questions}",
            row=row,
            values=self.rows.values(row, self.show),
            labels=[names[label] for label in labels],
            beliefs=[round(float(belief[label]), 6) for label in labels],
            yes_no=self.yes_no,
            audit=audit,
        )
        self._open.add(by, question, item)
        return question

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

        Sent twice, it counts once.

        Args:
            question: what `ask` gave, or its id.
            label: the right label; it may be one that was not shown.
            none: none of the shown labels is right.
            yes: with ``yes_no``, whether one of the shown labels is right.
            by: who says so.
        """
        n_given = [label is not None, none, yes is not None].count(True)
        if n_given != 1:
            raise FeedbackError.must("answer", OWNER, "one of label=, none=True, yes=", f"{n_given} of them")
        reply = (label, none, yes)
        open_question = self._open.find(by, question, reply)
        if open_question is None:
            return
        if yes is not None and not open_question.yes_no:
            raise FeedbackError.must("yes", OWNER, "left out, but for questions of yes or no", yes)
        hit = bool(yes) if label is None else self._live_label(label) in open_question.labels
        content = {"audit": open_question.audit, "hit": hit, "label": label}
        self._close(open_question, by, reply, content)

    def skip(self, question: Question | str, by: str = "") -> None:
        """Leave a ``question`` (or its id) that ``by`` was asked unanswered; its row comes again at the end."""
        open_question = self._open.find(by, question, None)
        if open_question is not None:
            self._close(open_question, by, None, {})

    def _close(self, question: Question, by: str, reply: Reply, content: JsonObject) -> None:
        """Keep what was said about a question, which is not open any more then."""
        self._keep([(self.rows.item_of_row[question.row], by, {"labels": question.labels, **content})])
        self._open.close(by, reply)
        self._catch_up()

    def undo(self, by: str = "") -> Question | None:
        """Take back the last answer of ``by``, or what they settled last, and ask again; None if there is none."""
        self._catch_up()
        own = [(answer.seq, item) for item, answers in self.state.answers.items() for answer in answers
               if answer.by == by]  # fmt: skip
        if not own:
            return None
        seq, item = max(own)
        self.journal.take_back(self.rows.keys[item], seq, by)
        self._catch_up()
        self._open.take_back(by, item)
        return self._question(item, by, audit=False)

    def settle(self, row: int, label: str, by: str = "") -> None:
        """Say what the label of a row is, whatever was answered before.

        Args:
            row: its number in the table, from 0.
            label: the right one.
            by: who says so.
        """
        if not 0 <= row < len(self.rows):
            raise InvalidInput.must("row", OWNER, f"a number from 0 to {len(self.rows) - 1}", row)
        content = {"label": self._live_label(label), "hit": True, "final": True}
        self._keep([(self.rows.item_of_row[row], check_person(by), content)])
        self._catch_up()

    def add_answers(self, answers: Sequence[JsonObject]) -> int:
        """Take over answers from elsewhere; how many of them are new.

        Args:
            answers: each with row (a number), by (left out: nobody), and label, or labels: none of these, or label
                where both are given; hit says whether the right one is among labels, final settles the row.
        """
        label_set, new = self.state.label_set, []
        numbers = label_set.numbers
        for answer in answers:
            item, label = int(self.rows.item_of_row[answer["row"]]), answer.get("label")
            shown, by = answer.get("labels") or [], check_person(answer.get("by", ""))
            hit, final = answer.get("hit"), answer.get("final", False)
            if hit is None:
                hit = label is not None and (not shown or label in shown)
            number = -1 if label is None else numbers[self._live_label(label)]
            numbers_shown = tuple(numbers[self._live_label(name)] for name in shown)
            earlier = [label_set.current_answer(one) or one for one in self.state.answers.get(item, ())]
            before = [(one.by, one.shown, one.hit, one.label, one.final) for one in earlier]
            if (by, numbers_shown, hit, number, final) not in before:  # else it is the same file, once more
                new.append((item, by, {"labels": shown, "hit": hit, "label": label, "final": final}))
        self._keep(new)
        self._catch_up()
        return len(new)

    def _keep(self, answers: Iterable[tuple[int, str, JsonObject]]) -> None:
        """Write answers into the journal: the item, who said it, and what."""
        from superarm.journal.events import AnswerBody

        keys = self.rows.keys
        self.journal.answer(
            [(keys[item], AnswerBody(about=0, by=by, **content)) for item, by, content in answers]
        )

    # ------------------------------------------------------------ labels and people

    def add_label(self, name: str, by: str = "") -> None:
        """A new label ``name``; or one that was retired, which comes back with its answers. ``by``: who says so."""
        self._change("add label", by, label=self._new_label(name))

    def rename_label(self, old: str, new: str, by: str = "") -> None:
        """Call the label ``old`` by the name ``new``. ``by``: who says so."""
        self._change("rename label", by, label=self._live_label(old), to=self._new_label(new))

    def merge_labels(self, old: str, into: str, by: str = "") -> None:
        """The label ``old`` becomes ``into``: all its rows are the other's. ``by``: who says so."""
        if old == into:
            raise InvalidInput.must("label", OWNER, "two different ones", old)
        self._change("merge label", by, label=self._spare_label(old), to=self._live_label(into))

    def retire_label(self, name: str, by: str = "") -> None:
        """The label ``name`` is gone; its rows are asked about again. ``by``: who says so."""
        self._change("retire label", by, label=self._spare_label(name))

    def leave_out(self, person: str, by: str = "") -> None:
        """The answers of ``person`` count no more. ``by``: who says so."""
        check_known_person(person, self.state.people() - {""}, "person", OWNER)
        self._change("leave out", by, person=person)

    def take_in(self, person: str, by: str = "") -> None:
        """The answers of ``person`` count again. ``by``: who says so."""
        check_known_person(person, self.state.excluded_people, "person", OWNER, "nobody is left out")
        self._change("take in", by, person=person)

    def _live_label(self, name: str) -> str:
        if name not in self.label_names:
            wanted = "one of the labels (or add it)"
            raise InvalidInput.must("label", OWNER, wanted, name, choices=self.label_names)
        return name

    def _spare_label(self, name: str) -> str:
        if len(self.label_names) <= 2:
            raise InvalidInput.must("labels", OWNER, "at least two, also without it", name)
        return self._live_label(name)

    def _new_label(self, text: str) -> str:
        name = check_label(text)
        if name in self.label_names:
            raise InvalidInput.must("label", OWNER, "a new name", name)
        return name

    def _change(self, what: str, by: str, **details: str) -> None:
        self.journal.change({"what": what, "by": check_person(by), **details})
        self._catch_up()
        if what != "add label":  # a question that is open stays one when there is a label more
            self._open.clear()

    # ------------------------------------------------------------ the rest

    def picture(self, row: int) -> tuple[bytes, str] | None:
        """The picture of a row of the table (``row``: its number, from 0), and its media type; None without one."""
        return self.rows.picture(row)

    def widget(self, by: str = "") -> Any:
        """Let ``by`` answer questions here: by buttons in a notebook that has ipywidgets, else in plain text."""
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
