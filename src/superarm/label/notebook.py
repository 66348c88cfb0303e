"""Labelling where one is: buttons in a notebook that has ipywidgets, questions in plain text anywhere else."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from superarm.errors import SuperarmError
from superarm.label.formats import shown_text

if TYPE_CHECKING:
    from superarm.label.job import Labelling
    from superarm.label.question import Question

HELP = "s skip, u undo, = NAME any label, + NAME a new one, q stop"


def label_here(job: Labelling, by: str = "") -> Any:
    """Answer questions here and now.

    Args:
        job: what is labelled.
        by: who answers.

    Returns:
        In a notebook with ipywidgets, a panel of buttons, which is live at once. Anywhere else, None, once
        somebody has stopped or all is labelled.
    """
    if _in_notebook() and importlib.util.find_spec("ipywidgets") is not None:
        return _panel(job, by)
    return _converse(job, by, input, print)


def _in_notebook() -> bool:
    """Whether a kernel runs this, with a page before it."""
    import sys

    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")


# ---------------------------------------------------------------- in plain text


def _converse(job: Labelling, by: str, ask: Callable[[str], str], tell: Callable[[str], object]) -> None:
    """Questions and answers, one line each."""
    question = job.ask(by)
    while question is not None:
        tell(_as_text(question))
        if question.picture and _in_notebook():
            _show_picture(job, question)
        try:
            typed = ask(f"{'y yes, n no' if question.yes_no else 'n none of these'}, {HELP}: ").strip()
        except (EOFError, KeyboardInterrupt):
            typed = "q"
        if typed in ("", "q"):
            break
        try:
            question = _act(job, question, typed, by)
        except SuperarmError as error:
            tell(str(error))
    tell(job.progress().sentence)


def _act(job: Labelling, question: Question, typed: str, by: str) -> Question | None:
    """Do what was typed; the next question."""
    word, name = typed.lower(), typed[1:].strip()
    if word == "u":
        return job.undo(by) or question
    if word == "s":
        job.skip(question, by)
    elif word == "n":
        job.answer(question, none=not question.yes_no, yes=False if question.yes_no else None, by=by)
    elif word == "y" and question.yes_no:
        job.answer(question, yes=True, by=by)
    elif typed[0] in "=+":
        if typed[0] == "+":
            job.add_label(name, by)
        job.answer(question, label=name, by=by)
    elif word.isdecimal() and 1 <= int(word) <= len(question.labels) and not question.yes_no:
        job.answer(question, label=question.labels[int(word) - 1], by=by)
    else:
        return question  # no such key: it is asked once more
    return job.ask(by)


def _as_text(question: Question) -> str:
    """A question in lines of text."""
    if question.yes_no:
        asked = ["is it one of these?" if len(question.labels) > 1 else "is it this?"]
        labels = [f"    {label}" for label in question.labels]
    else:
        asked, labels = ["which of these?"], [f"  {i}  {label}" for i, label in enumerate(question.labels, 1)]
    return "\n".join(["", shown_text(question.row), *asked, *labels])


def _show_picture(job: Labelling, question: Question) -> None:
    from IPython.display import Image, display

    picture = job.picture(question.number)
    if picture is not None:
        display(Image(data=picture[0], width=224))  # type: ignore[no-untyped-call]


# ---------------------------------------------------------------- buttons


def _panel(job: Labelling, by: str) -> Any:
    """A box of ipywidgets: the row, its labels, all other labels, skip and undo."""
    import ipywidgets as widgets

    wide = widgets.Layout(width="32em")
    row, labels, trouble = widgets.VBox(), widgets.VBox(), widgets.HTML()
    other = widgets.Combobox(placeholder="another label: find it, or add it", layout=wide)
    take, skip, undo = (widgets.Button(description=name) for name in ("Take it", "Skip", "Undo"))
    tools, progress = widgets.HBox([other, take]), widgets.HTML()
    open_: list[Question | None] = [None]

    def show(question: Question | None) -> None:
        open_[0], other.value = question, ""
        other.options = tuple(job.label_names)
        progress.value = escape(job.progress().sentence)
        tools.layout.display = skip.layout.display = None if question is not None else "none"
        row.children = () if question is None else _row(question)
        labels.children = () if question is None else _labels(question)

    def _row(question: Question) -> tuple[Any, ...]:
        picture = job.picture(question.number) if question.picture else None
        if picture is not None:
            return (widgets.Image(value=picture[0], format=picture[1].rpartition("/")[2], width=224),)
        text = escape(shown_text(question.row))
        return (widgets.HTML(f"<div style='font-size:1.3em;white-space:pre-wrap'>{text}</div>"),)

    def _labels(question: Question) -> tuple[Any, ...]:
        if question.yes_no:
            these = escape(" / ".join(question.labels))
            return (
                widgets.HTML(f"Is it <b>{these}</b>?"),
                button("Yes", {"yes": True}),
                button("No", {"yes": False}),
            )
        chosen = [button(label, {"label": label}) for label in question.labels]
        return (*chosen, button("None of these", {"none": True}))

    def button(text: str, answer: dict[str, Any]) -> Any:
        widget = widgets.Button(description=text, layout=wide, tooltip=text)
        widget.on_click(lambda _: act(lambda question: job.answer(question, by=by, **answer)))
        return widget

    def act(what: Callable[[Question], None]) -> None:
        trouble.value = ""
        try:
            if open_[0] is not None:
                what(open_[0])
            show(job.ask(by))
        except SuperarmError as error:
            trouble.value = escape(str(error))

    def another(question: Question) -> None:
        name = other.value.strip()
        if name not in job.label_names:
            job.add_label(name, by)
        job.answer(question, label=name, by=by)

    take.on_click(lambda _: act(another))
    skip.on_click(lambda _: act(lambda question: job.skip(question, by)))
    undo.on_click(lambda _: show(job.undo(by) or open_[0]))
    show(job.ask(by))
    return widgets.VBox([row, labels, tools, widgets.HBox([skip, undo]), trouble, progress])
