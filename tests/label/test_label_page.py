"""The page of `superarm label` in a real browser, over HTTP, before the real engine."""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from label_jobs import DIGITS, add_answers, answer_some

for part in ("uvicorn", "httptools", "msgspec", "orjson", "websockets"):
    pytest.importorskip(part, reason=f"the page's tests need {part}: pip install 'superarm[label,dev]'")

from page_kit import Command, Person, check_closed_to_strangers, serve_labelling  # noqa: E402
from service_browser import CHROMIUM  # noqa: E402
from service_kit import Web  # noqa: E402

from superarm.errors import InvalidInput  # noqa: E402
from superarm.label import Labelling  # noqa: E402
from superarm.label.app import LabellingServer, PeopleTokens  # noqa: E402
from superarm.label.rows_to_label import RowsToLabel  # noqa: E402

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here to open the page with (apt-get install chromium)"
)
EVIL = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'
TEAMS = ["billing", "login", "delivery", "returns"]


def tickets(n: int = 12) -> tuple[list[dict[str, str]], list[str]]:
    """Texts, and the team that each one is for."""
    truth = [TEAMS[i % len(TEAMS)] for i in range(n)]
    return [{"text": f"question {i} is about {team}"} for i, team in enumerate(truth)], truth


@pytest.fixture
def labeller(tmp_path):
    with Person(tmp_path) as labeller:
        yield labeller


# ---------------------------------------------------------------- in the browser


@needs_chromium
def test_answers_by_mouse_with_undo_and_a_new_label(labeller):
    rows, _ = tickets()
    job = Labelling(rows, labels=TEAMS, target=1.0, max_labels=2)
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        assert "kept at once" in labeller.text("status")
        first = labeller.question()
        assert labeller.text("row") == rows[first["row"]]["text"]
        assert labeller.text("prompt") == "Which of these?"
        labeller.choose(first["labels"][1])
        assert labeller.text("status") == f"Kept: {first['labels'][1]}"
        assert job.progress().clicks == 1
        second = labeller.question()
        assert second["row"] != first["row"]
        labeller.choose("None of these")
        third = labeller.question()
        assert third["row"] == second["row"]
        assert not set(third["labels"]) & set(second["labels"])
        assert labeller.text("prompt").startswith("Not those.")
        labeller.press("#undo")
        assert "Taken back" in labeller.text("status")
        assert labeller.question()["row"] == second["row"]
        assert labeller.text("prompt") == "Which of these?"
        # a label that is missing is added where all labels are found, and is the answer
        labeller.press("#search")
        labeller.type("praise")
        assert labeller.text("matches") == "Add “praise” as a new label"
        labeller.press("#matches > :last-child")
        assert labeller.text("status") == "Kept: praise, a new label"
        assert job.label_names == [*TEAMS, "praise"]
        assert job.results()[second["row"]]["label"] == "praise"
        # and one that is there but not shown is found, and is the answer
        row = labeller.question()["row"]
        labeller.press("#search")
        labeller.type("RETUR")
        assert labeller.text("matches").splitlines()[0] == "returns"
        labeller.press("#matches > :first-child")
        assert job.results()[row]["label"] == "returns"
        skipped = labeller.question()["row"]
        labeller.press("#skip")
        assert labeller.text("status") == "Skipped."
        assert labeller.question()["row"] != skipped
        assert labeller.complaints() == []


@needs_chromium
def test_answers_by_keyboard_alone(labeller):
    rows, _ = tickets()
    job = Labelling(rows, labels=TEAMS, target=1.0, max_labels=2)
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        first = labeller.question()
        labeller.key("2")
        assert job.results()[first["row"]]["label"] == first["labels"][1]
        second = labeller.question()
        labeller.key("9")  # there is no ninth label: nothing happens
        labeller.key("n", modifiers=2)  # Ctrl-N is the browser's
        assert labeller.question()["id"] == second["id"]
        labeller.key("N")
        assert labeller.question()["row"] == second["row"]
        labeller.key("u")
        labeller.key("u")
        assert labeller.question()["row"] == first["row"]
        assert job.results()[first["row"]]["label"] is None
        labeller.key("u")
        assert "nothing to take back" in labeller.text("status")
        labeller.key("s")
        assert labeller.text("status") == "Skipped."
        # find a label: the arrows choose, Enter answers, Escape leaves
        labeller.key("/")
        assert labeller.eval("document.activeElement.id") == "search"
        labeller.type("s")
        labeller.key("Escape")
        assert labeller.eval("document.activeElement.id") != "search"
        row = labeller.question()["row"]
        labeller.key("/")
        labeller.key("ArrowDown")
        labeller.key("ArrowDown")
        chosen = labeller.eval("document.querySelector('#matches [aria-selected=true]').innerText")
        active = labeller.eval("document.getElementById('search').getAttribute('aria-activedescendant')")
        assert (chosen, active) == ("login", "matches-1")
        labeller.key("Enter")
        assert job.results()[row]["label"] == "login"
        # Tab goes through all that can be pressed, in sight; the focus stays at its place for the next row
        labeller.eval("document.querySelector('h1').tabIndex = -1; document.querySelector('h1').focus()")
        focused = []
        for _ in range(6):
            labeller.key("Tab")
            focused.append(
                labeller.eval("document.activeElement.id || document.activeElement.lastChild.textContent")
            )
            assert labeller.eval("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        shown = labeller.question()["labels"]
        assert focused == [*shown, "None of these", "search", "skip", "undo"]
        labeller.eval("document.querySelectorAll('#choices button')[1].focus()")
        labeller.key("Enter")
        place = "[...document.querySelectorAll('#choices button')].indexOf(document.activeElement)"
        assert labeller.eval(place) == 1
        # what a screen reader is told
        spoken = labeller.eval("document.getElementById('live').textContent")
        question = labeller.question()
        assert rows[question["row"]]["text"] in spoken
        assert f"1 {question['labels'][0]}, 2 {question['labels'][1]}" in spoken
        in_sight = "[...document.querySelectorAll('button')].filter(b => b.offsetParent)"
        assert labeller.eval(f"{in_sight}.every(b => b.innerText.trim())")
        assert labeller.complaints() == []


@needs_chromium
def test_yes_and_no_and_other_keys(labeller):
    rows, truth = tickets()
    job = Labelling(rows, labels=TEAMS, target=1.0, yes_no=True)
    with serve_labelling(job, keys={"yes": "j", "undo": "z"}) as server:
        labeller.begin(server.address)
        for _ in range(8):
            question = labeller.question()
            assert labeller.text("prompt") in ("Is it this?", "Is it one of these?")
            right = truth[question["row"]] in question["labels"]
            labeller.key("j" if right else "n")
        before = job.progress().clicks
        labeller.key("y")  # is no key any more
        labeller.key("1")  # neither is this: the answer is yes or no
        assert job.progress().clicks == before
        labeller.key("z")
        assert labeller.question()["row"] == question["row"]
        labeller.choose("No")
        assert job.progress().clicks == before  # what was taken back does not count
        for one in job.results():
            if one["label"] is not None and one["how"] != "accepted":
                assert one["label"] == truth[one["row"]] or one["how"] == "believed"


# as people do: look at the row, press the key of its label, or N
WORK = """(async () => {
  for (let i = 0; i < 10; i++) {
    const q = state.question;
    if (!q) return true;
    const at = q.labels.indexOf(truth[q.row]), before = performance.now();
    dispatchEvent(new KeyboardEvent("keydown", { key: at < 0 ? "n" : String(at + 1) }));
    while (busy) await new Promise(next => setTimeout(next, 0));
    waits.push(performance.now() - before);
  }
  return false;
})()"""


@needs_chromium
@pytest.mark.slow
def test_digits_from_the_command_to_the_labels_in_a_file(labeller, tmp_path):
    """A script that knows the truth labels all of them; the process is killed on the way, and nothing is lost."""
    truth = RowsToLabel.read("digits").truth
    knows = f"window.truth = {truth!r}; window.waits = [];"
    with Command(tmp_path, "label", "digits", "--target", "0.95") as command:
        labeller.begin(command.address)
        image = "document.querySelector('#row img')"
        assert labeller.eval(f"{image}.naturalWidth") == 8
        assert labeller.eval(f"getComputedStyle({image}).imageRendering") == "pixelated"
        labeller.eval(knows)
        for _ in range(4):
            assert not labeller.eval(WORK)
        before = labeller.eval("state.clicks")
        assert before == 40
        command.process.kill()
    with Command(tmp_path, "label", "digits", "--target", "0.95") as command:
        labeller.begin(command.address)
        assert labeller.text("clicks") == "40"
        labeller.eval(knows)
        until = time.monotonic() + 900
        while not labeller.eval(WORK):
            assert time.monotonic() < until
        waits = sorted(labeller.eval("waits"))
        assert labeller.text("done-title") == "Finished"
        assert labeller.text("outcome").startswith("1,797 of 1,797 labelled, ")
        assert labeller.eval("document.activeElement.id") == "done"
        clicks, export = labeller.eval("state.clicks"), labeller.eval("state.export")
        assert export in labeller.text("export")
        message = command.end()
        assert labeller.text("outcome") in message
        assert export in message
    subprocess.run(
        [sys.executable, "-m", *shlex.split(export)], cwd=tmp_path, check=True, capture_output=True
    )
    with (tmp_path / "labelled.csv").open(encoding="utf-8") as file:
        labels = {int(row["row"]): row["label"] for row in csv.DictReader(file)}
    assert labels.keys() == set(range(len(truth)))
    wrong = sum(labels[row] != right for row, right in enumerate(truth))
    print(
        f"{clicks} clicks, {wrong} wrong; {median(waits):.0f} ms for half of the rows, {waits[-1]:.0f} at most"
    )
    assert wrong / len(truth) < 0.08
    assert clicks < len(truth) / 2
    assert [text for text in labeller.complaints() if "REFUSED" not in text] == []


@needs_chromium
def test_it_looks_as_it_should(labeller, tmp_path):
    rows, truth = tickets(96)
    job = Labelling(rows, labels=TEAMS, target=1.0, max_labels=3)
    answer_some(job, truth, 70)
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        labeller.check_looks(tmp_path, "label")
        # on a phone the row and all answers are in sight, and large enough for a thumb
        boxes = labeller.eval(
            "[...document.querySelectorAll('#choices button')].map(b => b.getBoundingClientRect().toJSON())"
        )
        assert all(box["height"] >= 44 and box["width"] > 250 and box["bottom"] < 844 for box in boxes)
        # words that count for and against differ in more than colour
        labeller.eval(
            "state.question.reasons = { text: state.question.values[0][1].split(' ').map("
            "(word, i) => [word, i ? 1 - i : 2]) }; showRow(state.question)"
        )
        style = "(s => [s.textDecorationStyle, s.fontWeight])(getComputedStyle(document.querySelector('#row .%s')))"
        styles = [labeller.eval(style % kind) for kind in ("for", "against")]
        assert styles[0][0] != styles[1][0]
        assert styles[0][1] != styles[1][1]
        assert "count for" in labeller.text("legend")
        assert "against" in labeller.text("legend")
        assert labeller.complaints() == []


@needs_chromium
def test_hostile_rows_and_labels_are_only_text(labeller, tmp_path):
    shots = Path(os.environ.get("SUPERARM_SHOTS", tmp_path))
    texts = [
        EVIL,
        "x" * 30_000,
        "",
        "👩‍👩‍👧‍👦 zażółć 中文",
        "שלום עולם (card 12)",
        "word " * 3000,
        "\n\n  spaces \t\n",
    ]
    rows = [{EVIL: text, "n": i} for i, text in enumerate(texts)]
    labels = [EVIL, "y" * 900, "🎉 party", "עברית", '"quoted" & <b>co</b>', "'", "</script>"]
    job = Labelling(rows, labels=labels, target=1.0, max_labels=7)
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        seen = set()
        for at in range(len(rows)):
            question = labeller.question()
            seen.add(question["row"])
            shown = texts[question["row"]]
            content = labeller.eval("document.querySelector('#row').textContent")
            assert (shown.strip()[:1000] or "(empty)") in content
            assert ("the first 20,000 of 30,000 characters" in content) == (len(shown) > 20_000)
            for width in (1280, 390):
                labeller.look(width=width, dark=False)
                assert labeller.eval("document.documentElement.scrollWidth <= innerWidth"), (
                    shown[:20],
                    width,
                )
                labeller.screenshot(shots / f"label-hostile-{question['row']}-{width}.png")
            buttons = labeller.eval(
                "[...document.querySelectorAll('#choices button')].map(b => b.lastChild.textContent)"
            )
            assert buttons == [*question["labels"], "None of these"]
            labeller.key(str(at % 7 + 1))
        assert seen == set(range(len(rows)))
        assert {one["label"] for one in job.results()} <= set(labels)
        assert labeller.eval("window.broken") is None
        assert labeller.eval("document.querySelectorAll('main img, main b, main script').length") == 0
        assert labeller.complaints() == []


@needs_chromium
def test_several_people_disagree_and_one_has_the_last_word(labeller, tmp_path):
    rows, truth = tickets()
    people = tmp_path / "people.txt"
    people.write_text("# name token\nanna  the-token-of-anna\nben   the-token-of-ben\n", encoding="utf-8")
    job = Labelling(rows, labels=TEAMS, target=1.0, second_opinion_share=1.0, max_labels=4)
    with serve_labelling(job, token_file=people) as server:
        web = Web(server.port)
        assert web("GET", "/question")[0] == 401
        assert web("GET", "/question", Authorization="Bearer the-token-of-carl")[0] == 401
        asked = web("GET", "/question", Authorization="Bearer the-token-of-ben")[1]
        assert asked["person"] == "ben"
        labeller.open(server.address)
        labeller.wait("document.activeElement.id == 'token'")  # the form is seen a moment before
        labeller.type("the-token-of-anna")
        # pressed while something else is awaited, it waits for its turn
        labeller.eval("busy = true; document.querySelector('#login button').click()")
        labeller.eval("setTimeout(() => { busy = false; }, 100)")
        labeller.settle()
        assert "you are anna" in labeller.text("count")
        # not the same row to two people at once
        assert labeller.question()["row"] != asked["question"]["row"]
        for _ in range(30):  # each answers all there is to answer, ben always the first label
            question = labeller.question()
            if question is not None:
                labeller.key(str(question["labels"].index(truth[question["row"]]) + 1))
            asked = web("GET", "/question", Authorization="Bearer the-token-of-ben")[1]["question"]
            if asked is not None:
                body = {"question": asked["id"], "label": asked["labels"][0]}
                assert web("POST", "/answer", body, Authorization="Bearer the-token-of-ben")[0] == 200
        differ = job.disagreements()
        assert differ
        # ben's last answer may have a question for anna: nothing moves from here on
        labeller.begin(server.address)
        labeller.press("#disagreements summary")
        labeller.wait(f"document.querySelectorAll('#disagreements li').length == {len(differ)}")
        told = labeller.text("disagreement-list")
        assert "anna said" in told
        assert "ben said" in told
        labeller.press("#disagreements li button")
        labeller.wait(f"document.querySelectorAll('#disagreements li').length == {len(differ) - 1}")
        labeller.settle()
        assert job.results()[differ[0]["row"]]["how"] == "final"
        assert "is final: " in labeller.text("status")
        labeller.key("u")  # takes the final label back, and asks
        assert "Taken back" in labeller.text("status")
        assert labeller.question()["row"] == differ[0]["row"]
        assert [one["row"] for one in job.disagreements()] == [one["row"] for one in differ]
        labeller.wait(f"document.querySelectorAll('#disagreements li').length == {len(differ)}")
        # a link with a token in it, which no server and no history gets to see
        labeller.send("Page.navigate", url=f"{server.address}#token=the-token-of-ben")
        labeller.wait("document.body && document.body.innerText.includes('you are ben')")
        assert labeller.eval("location.hash") == ""
        people.write_text("ben   the-token-of-ben\n", encoding="utf-8")  # anna's is taken back
        until = time.monotonic() + 20
        while web("GET", "/question", Authorization="Bearer the-token-of-anna")[0] != 401:
            assert time.monotonic() < until
            time.sleep(0.2)


@needs_chromium
def test_a_folder_of_pictures_large_and_small(labeller, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'superarm[label]'")
    folder = tmp_path / "photos"
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    image.fromarray(noise).save(folder / "large.png")
    image.new("RGB", (16, 16), "red").save(folder / "small.png")
    job = Labelling(folder, labels=["noise", "colour"], target=1.0)
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        seen = {}
        for _ in range(2):
            question = labeller.question()
            style = "(i => [i.naturalWidth, i.clientWidth, getComputedStyle(i).imageRendering])"
            seen[question["values"][0][1]] = labeller.eval(f"{style}(document.querySelector('#row img'))")
            labeller.key("1")
        assert seen == {"large.png": [400, 400, "auto"], "small.png": [16, 336, "pixelated"]}
        assert labeller.complaints() == []
        for name in seen:  # a row whose picture is gone can be answered all the same
            (folder / name).unlink()
        labeller.key("u")
        labeller.wait("document.querySelector('#row').innerText.includes('cannot be shown')")
        labeller.key("1")
        assert labeller.text("done-title") == "Finished"
        assert labeller.text("export") == "The labels are in job.labels()"


@needs_chromium
def test_pictures_that_people_disagree_about_are_seen(labeller):
    job = Labelling("digits", labels=DIGITS, target=1.0)
    add_answers(job, [{"row": 3, "by": by, "label": label} for by, label in (("anna", "3"), ("ben", "8"))])
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        labeller.press("#disagreements summary")
        labeller.wait("document.querySelectorAll('#disagreements img').length == 1")
        assert labeller.eval("document.querySelector('#disagreements img').naturalWidth") == 8
        others = "document.querySelector('#disagreements select')"
        job.add_label("a new one")  # by somebody else
        labeller.eval("fetchJson('question').then(showState).then(() => showDisagreements())")
        assert labeller.eval(f"[...{others}.options].some(option => option.text == 'a new one')")
        labeller.eval(f"{others}.value = '5'; {others}.dispatchEvent(new Event('change'))")
        labeller.wait("document.querySelectorAll('#disagreements li').length == 0")
        labeller.settle()
        assert (job.results()[3]["label"], job.results()[3]["how"]) == ("5", "final")
        assert "None: whoever answered" in labeller.text("no-disagreements")
        add_answers(
            job, [{"row": 4, "by": by, "label": label} for by, label in (("anna", "4"), ("ben", "8"))]
        )
        labeller.eval("showDisagreements()")
        labeller.wait("document.querySelectorAll('#disagreements button').length == 3")
        labeller.eval("[...document.querySelectorAll('#disagreements button')].pop().click()")
        labeller.wait("document.querySelectorAll('#disagreements li').length == 0")
        labeller.settle()
        assert (job.results()[4]["label"], job.results()[4]["how"]) == (None, "none fits")
        assert labeller.text("status") == "Row 5 is final: no label fits"
        assert labeller.complaints() == []


# look for what others have done, and hold the reply back
HOLD = """(async () => {
  const fetchNow = window.fetch;
  const held = reply => new Promise(go => { window.release = () => go(reply); });
  window.fetch = (...request) => fetchNow(...request).then(held);
  window.looking = lookAgain();
  window.fetch = fetchNow;
  while (!window.release) await new Promise(go => setTimeout(go, 5));
})()"""


@needs_chromium
def test_an_old_reply_does_not_hide_the_row_of_an_undo(labeller):
    job = Labelling([{"n": 1.0}, {"n": 2.0}], labels=["a", "b"], target=1.0)
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        labeller.key("1")
        labeller.key("1")
        assert labeller.text("done-title") == "Finished"
        labeller.eval(HOLD)
        labeller.key("u")
        question = labeller.question()
        assert question is not None
        labeller.eval("window.release(), window.looking")
        assert labeller.question() == question
        assert not labeller.eval("document.getElementById('ask').hidden")


@needs_chromium
def test_two_windows_and_an_end(labeller):
    rows, _ = tickets()
    job = Labelling(rows, labels=TEAMS, target=1.0)
    with serve_labelling(job) as server:
        labeller.begin(server.address)
        question = labeller.question()
        job.answer(question["id"], label="billing")  # in another window
        labeller.key("n")
        assert "answered before" in labeller.text("status")
        assert labeller.question()["id"] != question["id"]
        server.stop()
        labeller.key("1")
        assert "does not answer" in labeller.text("status")
        assert labeller.eval("document.getElementById('status').className") == "wide bad"


# ---------------------------------------------------------------- the server


def test_the_server_is_closed_to_strangers_and_says_what_is_wrong():
    rows, _ = tickets()
    job = Labelling(rows, labels=TEAMS)
    with serve_labelling(job) as server:
        web = Web(server.port)
        assert "img-src blob:" in check_closed_to_strangers(web, post="/answer")
        status, state = web("GET", "/question")
        assert status == 200
        assert state["person"] == ""
        text = str(state)
        assert "audit" not in text  # nobody shall know which questions these are
        assert "belief" not in text
        id_ = state["question"]["id"]
        for body in (
            {"question": id_},
            {"question": id_, "none": True, "label": "billing"},
            {"question": id_, "label": "no such label"},
            {"question": "no such question", "none": True},
            {"question": id_, "yes": True},
            {"question": id_, "none": "perhaps"},
        ):
            assert web("POST", "/answer", body)[0] == 422, body
        assert web("GET", "/picture?row=0")[0] == 422
        assert web("GET", "/picture?row=99999")[0] == 422
        assert web("POST", "/labels", {"name": "  "})[0] == 422
        assert web("POST", "/labels", {"name": "billing"})[0] == 422
        assert web("POST", "/final", {"row": -1, "label": "billing"})[0] == 422
        assert web("POST", "/final", {"row": 3})[0] == 422
        assert web("POST", "/final", {"row": 3, "label": None})[0] == 200
        assert (job.results()[3]["label"], job.results()[3]["how"]) == (None, "none fits")
        assert web("POST", "/undo", {})[1]["undone"] is True
        assert web("POST", "/final", {"row": 3, "label": "billing"})[0] == 200
        assert job.results()[3]["how"] == "final"
        undone = web("POST", "/undo", {})[1]
        assert (undone["undone"], undone["question"]["row"]) == (True, 3)
        assert job.results()[3]["label"] is None
        assert web("POST", "/undo", {})[1]["undone"] is False
        assert web("GET", "/question")[1]["clicks"] == 0
        with pytest.raises(
            InvalidInput, match=f"--port of superarm label must be free, on 127.0.0.1:{server.port}"
        ):
            LabellingServer(server.port)
        with pytest.raises(InvalidInput, match="needs --token-file"):
            LabellingServer(host="0.0.0.0")


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({"nome": "x"}, "did you mean 'none'"),
        ({"none": "xx"}, "a visible character for none"),
        ({"skip": " "}, "a visible character for skip"),
        ({"skip": "n"}, "distinct, got n twice"),
        ({"labels": "12u"}, "distinct, got u twice"),
        ({"yes": "n"}, "distinct, got n twice"),
    ],
)
def test_keys_are_checked(keys, wanted):
    with pytest.raises(InvalidInput, match=wanted):
        LabellingServer(keys=keys)


def test_tokens_of_people_are_checked(tmp_path):
    file = tmp_path / "people.txt"
    for text, wanted in (
        ("anna\n", "line 1 of .* must be a name without spaces and commas, not 'file', and a token"),
        ("anna,ben sixteen-letters-or-more\n", "line 1 of .* must be a name without spaces and commas"),
        ("file sixteen-letters-or-more\n", "line 1 of .* must be a name without spaces and commas"),
        ("anna short\n", "at least 16 visible"),
        ("\n# nobody\n", "a file with a token"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidInput, match=wanted):
            PeopleTokens(file)
    with pytest.raises(InvalidInput, match="--token-file of superarm label must be a file"):
        PeopleTokens(tmp_path / "missing")
