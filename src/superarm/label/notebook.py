"""Labelling in a notebook that has ipywidgets, by buttons; anywhere else, in plain text."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from superarm._progress import in_notebook
from superarm.errors import SuperarmError
from superarm.label.formats import values_text

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling
    from superarm.label.question import Question

Widget = Any  # of ipywidgets
HELP = "s skip, u undo, = NAME any label, + NAME a new one, q stop"
PICTURE_WIDTH = 224
WIDTH = "32em"  # of a label's button


def label_here(job: Labelling, by: str) -> Widget | None:
    """Return buttons in a notebook that has ipywidgets; elsewhere ask in plain text, and return None."""
    if in_notebook() and importlib.util.find_spec("ipywidgets") is not None:
        return Panel(job, by).box
    label_in_text(job, by, input, print)
    return None


# ---------------------------------------------------------------- in plain text


def label_in_text(
    job: Labelling, by: str, read: Callable[[str], str], write: Callable[[str], object]
) -> None:
    """Ask questions in lines of text: ``read`` shows a prompt and returns a line, ``write`` shows a text."""
    question = job.ask(by)
    while question is not None:
        write(_as_text(question))
        if in_notebook():
            _show_picture(job, question)
        try:
            line = read(f"{'y yes, n no' if question.yes_no else 'n none of these'}, {HELP}: ").strip()
        except (EOFError, KeyboardInterrupt):
            line = "q"
        if line in ("", "q"):
            break
        try:
            question = _run_command(job, question, line, by)
        except SuperarmError as error:
            write(str(error))
    write(str(job.progress()))


def _run_command(job: Labelling, question: Question, line: str, by: str) -> Question | None:
    """Run the command that was typed, and return the next question."""
    word, name = line.lower(), line[1:].strip()
    if word == "u":
        return job.undo(by) or question
    if word == "s":
        job.skip(question, by)
    elif word == "n":
        job.answer(question, none=not question.yes_no, yes=False if question.yes_no else None, by=by)
    elif word == "y" and question.yes_no:
        job.answer(question, yes=True, by=by)
    elif line[0] in "=+":
        if line[0] == "+":
            job.add_label(name, by)
        job.answer(question, label=name, by=by)
    elif word.isdecimal() and 1 <= int(word) <= len(question.labels) and not question.yes_no:
        job.answer(question, label=question.labels[int(word) - 1], by=by)
    else:
        return question  # no such key: it is asked once more
    return job.ask(by)


def _as_text(question: Question) -> str:
    """Return a question in lines of text."""
    if question.yes_no:
        prompt = "is it one of these?" if len(question.labels) > 1 else "is it this?"
        labels = [f"    {label}" for label in question.labels]
    else:
        prompt = "which of these?"
        labels = [f"  {i}  {label}" for i, label in enumerate(question.labels, 1)]
    return "\n".join(["", values_text(question.values), prompt, *labels])


def _show_picture(job: Labelling, question: Question) -> None:
    from IPython.display import Image, display

    picture = job.rows.picture(question.row)
    if picture is not None:
        display(Image(data=picture.content, width=PICTURE_WIDTH))  # type: ignore[no-untyped-call]


# ---------------------------------------------------------------- buttons


class Panel:
    """Buttons of ipywidgets: the row, its labels, all other labels, skip and undo.

    Args:
        job: what is labelled.
        by: who answers.

    Attributes:
        box: what a notebook shows.
    """

    def __init__(self, job: Labelling, by: str) -> None:
        import ipywidgets

        self.job, self.by, self._widgets = job, by, ipywidgets
        self.box = ipywidgets.VBox()
        self._show()

    def _show(self, error: str = "") -> None:
        """Show the question that is open or comes next, and what was wrong with the last reply."""
        job, by, widgets = self.job, self.by, self._widgets
        question = job.ask(by)
        parts = list[Widget]()
        tools = [self._button("Undo", lambda: job.undo(by))]
        if question is not None:
            other = widgets.Combobox(
                placeholder="another label: find it, or add it", options=tuple(job.label_names)
            )
            other.layout.width = WIDTH
            take = self._button("Use this label", lambda: self._answer_any(question, other.value.strip()))
            labels = widgets.VBox(self._label_widgets(question))
            parts = [self._row_widget(question), labels, widgets.HBox([other, take])]
            tools.insert(0, self._button("Skip", lambda: job.skip(question, by)))
        texts = [widgets.HTML(escape(text)) for text in (error, str(job.progress()))]
        self.box.children = (*parts, widgets.HBox(tools), *texts)

    def _row_widget(self, question: Question) -> Widget:
        picture = self.job.rows.picture(question.row)
        if picture is not None:
            format_ = picture.media_type.rpartition("/")[2]
            return self._widgets.Image(value=picture.content, format=format_, width=PICTURE_WIDTH)
        text = escape(values_text(question.values))
        return self._widgets.HTML(f"<div style='font-size:1.3em;white-space:pre-wrap'>{text}</div>")

    def _label_widgets(self, question: Question) -> list[Widget]:
        def button(text: str, **answer: Any) -> Widget:
            widget = self._button(text, lambda: self.job.answer(question, by=self.by, **answer))
            widget.layout.width = WIDTH
            return widget

        if question.yes_no:
            labels = escape(" / ".join(question.labels))
            prompt = self._widgets.HTML(f"Is it <b>{labels}</b>?")
            return [prompt, button("Yes", yes=True), button("No", yes=False)]
        return [
            *(button(label, label=label) for label in question.labels),
            button("None of these", none=True),
        ]

    def _button(self, text: str, act: Callable[[], object]) -> Widget:
        """Return a button that does something, and shows the question that follows."""
        button = self._widgets.Button(description=text, tooltip=text)
        button.on_click(lambda _: self._run(act))
        return button

    def _run(self, act: Callable[[], object]) -> None:
        error = ""
        try:
            act()
        except SuperarmError as failure:
            error = str(failure)
        self._show(error)

    def _answer_any(self, question: Question, label: str) -> None:
        """Answer with a label that may be new."""
        if label not in self.job.label_names:
            self.job.add_label(label, self.by)
        self.job.answer(question, label=label, by=self.by)
