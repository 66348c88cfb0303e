"""Labelling in a notebook: plain text, and buttons where ipywidgets is installed."""

from __future__ import annotations

import pytest

from superarm.label import Labelling, notebook

TEAMS = ["billing", "login", "delivery"]
ROWS = [
    {"text": text}
    for text in ("charged twice", "cannot log in", "parcel lost", "wrong invoice", "locked out")
]


class Person:
    """Says one line after the other, and remembers what it was told."""

    def __init__(self, *lines: str) -> None:
        self.lines, self.heard = list(lines), list[str]()

    def ask(self, prompt: str) -> str:
        self.heard.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


def converse(job: Labelling, *lines: str) -> str:
    person = Person(*lines)
    notebook.label_in_text(job, "anna", person.ask, person.heard.append)
    assert person.lines == []
    return "\n".join(person.heard)


def test_a_conversation_in_plain_text():
    job = Labelling(ROWS, labels=TEAMS, target=1.0, max_labels=2)
    first = job.ask("anna")
    heard = converse(job, "2", "s", "nonsense", "7", "= login", "= no such", "+ praise", "q")
    assert first.values["text"] in heard
    assert f"1  {first.labels[0]}" in heard
    assert "one of the labels (or add it), got 'no such'" in heard
    assert heard.endswith(str(job.progress()))
    results = job.results()
    assert results[first.row]["label"] == first.labels[1]
    assert {one["by"] for one in results if one["label"]} == {"anna"}
    assert sorted(one["label"] for one in results if one["label"] in ("login", "praise"))[-1] == "praise"
    assert job.label_names == [*TEAMS, "praise"]
    assert job.progress().clicks == 3


def test_undo_and_none_and_the_end_of_input():
    job = Labelling(ROWS, labels=TEAMS, target=1.0, max_labels=1)
    row = job.ask("anna").row
    converse(job, "n", "n", "u", "u", "u", "1")  # and nothing more: it stops by itself
    assert job.results()[row]["clicks"] >= 1
    assert job.results()[row]["label"] is not None


def test_yes_and_no_until_all_is_labelled():
    job = Labelling(ROWS, labels=["a", "b"], target=1.0, yes_no=True)
    heard = converse(job, *["y"] * len(ROWS))
    assert "is it this?" in heard
    assert job.progress().finished
    assert heard.count("y yes, n no") == len(ROWS)


def test_outside_of_a_notebook_it_is_plain_text(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda prompt: "q")
    assert Labelling(ROWS, labels=TEAMS).widget() is None
    assert "which of these?" in capsys.readouterr().out


def test_buttons_in_a_notebook(monkeypatch):
    pytest.importorskip("ipywidgets", reason="needs ipywidgets: pip install ipywidgets")
    monkeypatch.setattr(notebook, "in_notebook", lambda: True)
    evil = "<script>alert(1)</script>"
    job = Labelling([*ROWS, {"text": evil}], labels=TEAMS, target=1.0, max_labels=2)
    panel = job.widget(by="ben")

    def press(text: str) -> None:
        lines = [line for part in panel.children for line in getattr(part, "children", ())]
        next(one for one in lines if getattr(one, "description", "") == text).click()

    first = job.ask("ben")
    labels = panel.children[1].children
    assert [one.description for one in labels] == [*first.labels, "None of these"]
    press(first.labels[0])
    assert job.results()[first.row]["label"] == first.labels[0]
    press("Undo")
    assert job.results()[first.row]["label"] is None
    press("None of these")
    for label, error in (("praise", ""), ("", "must be a name of at most 1,000")):
        panel.children[2].children[0].value = label
        press("Use this label")
        assert error in panel.children[-2].value
    assert "praise" in panel.children[2].children[0].options
    press("Skip")
    assert panel.children[-2].value == ""
    while (question := job.ask("ben")) is not None:
        assert "<script>" not in panel.children[0].value
        press(question.labels[0])
    assert len(panel.children) == 3  # undo is left
    assert panel.children[-1].value.startswith("6 of 6 labelled")
