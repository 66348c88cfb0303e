"""Labelling: ask and answer, until enough labels are right. Each answer is in the journal before it counts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superarm._types import Frame, JsonObject
from superarm.data.column import ColumnKinds
from superarm.data.labels import Label, to_label
from superarm.errors import FeedbackError, InvalidInput, Unquoted
from superarm.journal.events import AnswerBody
from superarm.label.answers import Answer, is_hit, mentioned_labels
from superarm.label.labelling_journal import LabellingJournal
from superarm.label.names import (
    OWNER,
    TABLE_AS_PERSON,
    check_known_person,
    check_label,
    check_labels,
    check_person,
)
from superarm.label.question import OpenQuestions, Question, Reply, choose_labels
from superarm.label.results import LabellingResults
from superarm.label.rows_to_label import RowsToLabel
from superarm.learners.locking import takes_turns


class Labelling(LabellingResults):
    """Label rows with about one click a row.

    Settings that are left out are as in the journal; of a new one, those that are named here.

    Args:
        rows: a file (.csv, .tsv, .jsonl, .parquet, .npz), a folder of pictures or texts, a data frame, a list of dicts,
            or ``"digits"``.
        labels: their names; or the name of a column that holds some of them (those rows teach first).
        journal: where answers are kept, a file or a postgresql:// address; left out, in memory only.
        target: the share of labels that shall be right; 1 looks at every row. 0.99.
        yes_no: ask "is it one of these?" in place of "which of these?". False.
        max_labels: how many labels a question shows at most. 5.
        show: the column or columns that people see. All.
        second_opinion_share: the share of rows that are asked about a second time, of somebody else where there are
            several. 0.
        vectors: an .npy with a vector for each row.
        kinds: what some columns of the table are: ``{"note": "text", "id": "left out"}``.
        seed: for the order of rows. 0.
        read_only: write nothing to the journal, which others may be using: there is no answering then.

    >>> job = Labelling("digits", labels=[str(digit) for digit in range(10)], target=0.98)
    >>> question = job.ask()
    >>> job.answer(question, none=True)
    >>> job.progress().clicks
    1
    """

    def __init__(
        self,
        rows: Frame | RowsToLabel | str | Path,
        *,
        labels: Sequence[str] | str | None = None,
        journal: LabellingJournal | str | Path | None = None,
        target: float | None = None,
        yes_no: bool | None = None,
        max_labels: int | None = None,
        show: Sequence[str] | str | None = None,
        second_opinion_share: float | None = None,
        vectors: str | Path | None = None,
        kinds: ColumnKinds | None = None,
        seed: int | None = None,
        read_only: bool = False,
    ) -> None:
        self.journal = LabellingJournal.of(journal, read_only)
        try:
            column = labels if isinstance(labels, str) else None
            if not isinstance(rows, RowsToLabel):
                rows = self.journal.read_rows(rows, label=column, vectors=vectors, kinds=kinds)
            names = rows.label_names if labels is None or column else check_labels(labels)
            options: JsonObject = {
                "target": target,
                "yes_no": yes_no,
                "max_labels": max_labels,
                "show": None if show is None else rows.check_columns(show),
                "second_opinion_share": second_opinion_share,
                "seed": seed,
            }
            given = {name: value for name, value in options.items() if value is not None}
            super().__init__(rows, self.journal.begin(rows, names, given))
            self._open_questions = OpenQuestions()
            self._n_questions = 0
            self._catch_up()
            if not self.journal.read_only:
                self._add_labels_of_table(names or ())
        except BaseException:
            self.journal.close()
            raise

    @classmethod
    def resume(
        cls,
        journal: LabellingJournal | str | Path,
        rows: Frame | str | Path | None = None,
        *,
        read_only: bool = False,
    ) -> Labelling:
        """Open the labelling in a journal, with its settings.

        Args:
            journal: a file or a postgresql:// address.
            rows: where its rows are, or a frame or list of dicts that holds them; left out, beside the journal, or else
                where they were.
            read_only: write nothing to the journal, which others may be using.
        """
        opened = LabellingJournal.of(journal, read_only)
        try:
            return cls(opened.find_rows(rows), journal=opened)
        except BaseException:
            opened.close()
            raise

    def _add_labels_of_table(self, names: Sequence[str]) -> None:
        """Add labels whose names are new; to a new journal, also those that the table has for its rows.

        Items for which the table has several labels are asked about; that, and what else may be wrong, is warned of.
        """
        for name in names:
            if name not in self.state.label_set.index_of:
                self.journal.change({"what": "add label", "label": name, "by": ""})
        if self.journal.saved_settings is None:
            for sentence in self.rows.warnings():
                warnings.warn(sentence, stacklevel=3)
            labels = self.rows.label_by_item()
            self._keep_answers(
                (item, AnswerBody(by=TABLE_AS_PERSON, label=labels[item], final=True))
                for item in self.planner.order.tolist()
                if labels.get(item) is not None
            )
        self._catch_up()

    def _catch_up(self) -> None:
        """Apply the events that have come since: also those of other processes."""
        self.planner.apply(self.journal.new_events())

    # ------------------------------------------------------------ asking

    @takes_turns
    def ask(self, by: str = "") -> Question | None:
        """Return the next question for ``by``; None when enough labels are right, or all rows are with others."""
        check_person(by)
        self._catch_up()
        if by in self.state.excluded_people:
            return None
        question = self._open_questions.get(by)
        if question is not None:  # the page was loaded again, say
            return question
        busy = set(self.rows.item_of_row[self._open_questions.rows()].tolist())
        unfinished = self.state.unfinished_item(by)
        if unfinished is not None and unfinished not in busy:
            return self._ask_about(unfinished, by, audit=False)
        if self.planner.is_finished():
            return None
        choice = self.planner.next_item(busy, by)
        return None if choice is None else self._ask_about(choice.item, by, audit=choice.is_audit)

    def _ask_about(self, item: int, by: str, *, audit: bool) -> Question:
        belief = self.state.belief(item)
        settings, names = self.settings, self.state.label_set.names
        showable = self.state.showable(item, belief)
        labels = choose_labels(belief, showable, settings.max_labels, settings.yes_no)
        row = int(self.rows.first_row[item])
        self._n_questions += 1
        question = Question(
            id=f"{self.rows.keys[item]}-{self.journal.seq}-{self._n_questions}",
            row=row,
            values=self.rows.values(row, settings.show),
            labels=[names[label] for label in labels],
            beliefs=[round(float(belief[label]), 6) for label in labels],
            yes_no=settings.yes_no,
            audit=audit,
        )
        self._open_questions.add(by, question)
        return question

    # ------------------------------------------------------------ answering

    @takes_turns
    def answer(
        self,
        question: Question | str,
        *,
        label: Label | None = None,
        none: bool = False,
        yes: bool | None = None,
        by: str = "",
    ) -> None:
        """Answer a question: which label it is, that it is none of those shown, or yes or no. Durable when it returns.

        Sent twice, it counts once.

        Args:
            question: what `ask` gave, or its id.
            label: the right label, or a number that is its name; it may be one that was not shown.
            none: none of the shown labels is right.
            yes: with ``yes_no``, whether one of the shown labels is right.
            by: who says so.
        """
        n_given = [label is not None, none, yes is not None].count(True)
        if n_given != 1:
            raise FeedbackError.must(
                "answer", OWNER, "one of label=, none=True, yes=", Unquoted(f"{n_given} of them")
            )
        self._reply(question, Reply(None if label is None else self._name_of(label), none, yes), by)

    @takes_turns
    def skip(self, question: Question | str, by: str = "") -> None:
        """Leave a ``question`` (or its id) that ``by`` was asked unanswered; its row comes again at the end."""
        self._reply(question, Reply(), by)

    def _reply(self, question: Question | str, reply: Reply, by: str) -> None:
        """Keep the reply to a question, which is not open any more then; nothing if it was sent twice."""
        opened = self._open_questions.find(by, question, reply)
        if opened is None:
            return
        label, _, yes = reply
        if yes is not None and not opened.yes_no:
            raise FeedbackError.must("yes", OWNER, "left out, but for questions of yes or no", yes)
        body = AnswerBody(by=by, labels=opened.labels)
        if reply != Reply():
            body.hit = bool(yes) if label is None else self._check_live(label) in opened.labels
            body.label, body.audit = label, opened.audit
        self._keep_answers([(self._item_of(opened.row), body)])
        self._open_questions.close(by, reply)

    @takes_turns
    def undo(self, by: str = "") -> Question | None:
        """Take back the last answer of ``by``, a final label included, and ask again; None if none of theirs counts."""
        self._catch_up()
        own = [(answer.seq, item) for item, answers in self.state.answers.items() for answer in answers
               if answer.by == by]  # fmt: skip
        if not own or by in self.state.excluded_people:
            return None
        seq, item = max(own)
        self.journal.take_back(self.rows.keys[item], seq, by)
        self._catch_up()
        self._open_questions.take_back(by, int(self.rows.first_row[item]))
        return self._ask_about(item, by, audit=False)

    @takes_turns
    def set_final_label(self, row: int, label: Label | None, by: str = "") -> None:
        """Set the label of a row, or that none fits, whatever was answered before.

        Args:
            row: its number in the table, from 0.
            label: the right one; None: none of the labels that there are fits.
            by: who says so.
        """
        name = None if label is None else self._check_live(label)
        shown = self.label_names if name is None else None
        body = AnswerBody(by=check_person(by), hit=name is not None, labels=shown, label=name, final=True)
        self._keep_answers([(self._item_of(row), body)])

    @takes_turns
    def add_answers(self, answers: Iterable[tuple[int, AnswerBody]], *, may_repeat: bool = False) -> int:
        """Add answers about rows, and return how many of them are new: an answer counts once for each person.

        Args:
            answers: each with the row that it is about.
            may_repeat: they are of a journal, where a person who was asked again has answered twice.
        """
        label_set = self.state.label_set
        new = list[tuple[int, AnswerBody]]()
        known: dict[int, Counter[Answer]] = {}
        for row, body in answers:
            item, mentioned = self._item_of(row), mentioned_labels(body)
            check_person(body.by)
            for name in mentioned:
                self._check_live(name)
            if not mentioned:
                raise InvalidInput.must(
                    "answer", OWNER, "one with label or labels", Unquoted(f"neither, for row {row}")
                )
            body.hit = is_hit(body)
            if item not in known:
                earlier = (label_set.current_answer(one) or one for one in self.state.answers.get(item, ()))
                known[item] = Counter(one._replace(seq=0, is_audit=False) for one in earlier)
            answer = Answer.from_body(body, label_set.index_of)
            unaudited = answer._replace(is_audit=False)
            if not known[item][unaudited]:
                new.append((item, body))
                known[item][unaudited] += not may_repeat
            elif may_repeat:  # it is the same file, once more: each one that is known stands for one of it
                known[item][unaudited] -= 1
        self._keep_answers(new)
        return len(new)

    def _keep_answers(self, answers: Iterable[tuple[int, AnswerBody]]) -> None:
        """Write answers about items into the journal, and apply them."""
        self.journal.answer((self.rows.keys[item], body) for item, body in answers)
        self._catch_up()

    def _item_of(self, row: object) -> int:
        """Return the item that a row of the table is."""
        if not isinstance(row, int | np.integer) or not 0 <= row < len(self.rows):
            raise InvalidInput.must("row", OWNER, f"a number from 0 to {len(self.rows) - 1}", row)
        return int(self.rows.item_of_row[row])

    # ------------------------------------------------------------ labels and people

    @takes_turns
    def add_label(self, name: str, by: str = "") -> None:
        """Add a label ``name``; one that was disabled comes back with its answers. ``by``: who says so."""
        self._change("add label", by, label=self._check_new(name))

    @takes_turns
    def rename_label(self, old: str, new: str, by: str = "") -> None:
        """Call the label ``old`` by the name ``new``. ``by``: who says so."""
        self._change("rename label", by, label=self._check_live(old), to=self._check_new(new))

    @takes_turns
    def merge_labels(self, old: str, into: str, by: str = "") -> None:
        """Let the label ``old`` become ``into``: all its rows are the other's. ``by``: who says so."""
        if old == into:
            raise InvalidInput.must("label", OWNER, "two different ones", old)
        self._change("merge label", by, label=self._check_removable(old), to=self._check_live(into))

    @takes_turns
    def disable_label(self, name: str, by: str = "") -> None:
        """Let the label ``name`` not be given any more; its rows are asked about again. ``by``: who says so."""
        self._change("disable label", by, label=self._check_removable(name))

    @takes_turns
    def exclude_person(self, person: str, by: str = "") -> None:
        """Let the answers of ``person`` not count any more. ``by``: who says so."""
        check_known_person(person, self.state.people(), "person", OWNER)
        if person in self.state.excluded_people:
            raise InvalidInput.must(
                "person", OWNER, "one whose answers count", Unquoted(f"{person}, excluded already")
            )
        self._change("exclude person", by, person=person)

    @takes_turns
    def include_person(self, person: str, by: str = "") -> None:
        """Let the answers of ``person`` count again. ``by``: who says so."""
        check_known_person(person, self.state.excluded_people, "person", OWNER, "nobody is excluded")
        self._change("include person", by, person=person)

    def _name_of(self, label: Label) -> str:
        """Return the name that a value stands for: labels given as numbers are texts, also 3.0 and those of NumPy."""
        return str(label) if str(label) in self.label_names else str(to_label(label))

    def _check_live(self, label: Label) -> str:
        name = self._name_of(label)
        if name not in self.label_names:
            wanted = "one of the labels (or add it)"
            raise InvalidInput.must("label", OWNER, wanted, name, choices=self.label_names)
        return name

    def _check_removable(self, name: str) -> str:
        if len(self.label_names) <= 2:
            raise InvalidInput.must("labels", OWNER, "at least two, also without it", name)
        return self._check_live(name)

    def _check_new(self, text: str) -> str:
        name = check_label(text)
        if name in self.label_names:
            raise InvalidInput.must("label", OWNER, "a new name", name)
        return name

    def _change(self, what: str, by: str, **details: str) -> None:
        self.journal.change({"what": what, "by": check_person(by), **details})
        self._catch_up()
        if what != "add label":  # a question that is open stays one when there is a label more
            self._open_questions.clear()

    # ------------------------------------------------------------ the rest

    def widget(self, by: str = "") -> Any:
        """Let ``by`` answer questions here, in plain text; in a notebook that has ipywidgets, return live buttons."""
        from superarm.label.notebook import label_here

        return label_here(self, by)

    @takes_turns
    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def __enter__(self) -> Labelling:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Labelling({self.rows.name!r}: {self.progress()})"
