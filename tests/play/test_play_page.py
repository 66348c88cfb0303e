"""`superarm play` in a real browser, over HTTP, and from the command line."""

from __future__ import annotations

import asyncio

import pytest

for part in ("uvicorn", "httptools", "msgspec", "orjson", "websockets"):
    pytest.importorskip(part, reason=f"play's tests need {part}: pip install 'superarm[serve,dev]'")

from page_kit import Command, Person, check_closed_to_strangers, serve_game  # noqa: E402
from service_browser import CHROMIUM  # noqa: E402
from service_kit import Web  # noqa: E402

from superarm.errors import InvalidInput  # noqa: E402
from superarm.play.app import GameHandler, play  # noqa: E402

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here to open the page with (apt-get install chromium)"
)


@pytest.fixture
def handler():
    return GameHandler()


@pytest.fixture
def server(handler):
    with serve_game(handler) as server:
        yield server


@pytest.fixture
def person(server, tmp_path):
    with Person(tmp_path) as person:
        person.begin(server.address)
        yield person


def error_of(person, place: int) -> float:
    return float(person.eval(f"document.querySelectorAll('.number')[{place}].textContent").split()[0])


@needs_chromium
def test_somebody_teaches_by_mouse_and_the_computer_goes_on(person, handler, tmp_path):
    assert "knows nothing" in person.text("message")
    assert person.text("shown").split() == [str(label) for label in handler.game.shown]
    drawn = person.eval("document.querySelectorAll('#picture rect').length")
    assert drawn == (handler.game.x > 0).sum()
    shown = handler.game.shown
    person.press("#yes")
    assert f"Yes: so it was {shown[0]}, {shown[1]} or {shown[2]}." in person.text("message")
    shown = handler.game.shown
    person.press("#no")
    assert f"No: so it was not {shown[0]}, {shown[1]} or {shown[2]}." in person.text("message")
    assert person.text("count") == "2 answers, all of them yours"
    assert [error_of(person, i) for i in range(3)] == pytest.approx(
        [round(100 * e, 1) for e in handler.game.curve[-1][1:]]
    )
    person.press("#computer")
    assert person.text("count") == "1,002 answers, 2 of them yours"
    assert error_of(person, 0) < 15.0 < error_of(person, 1)  # SetLogit, and the paper's learner
    assert error_of(person, 2) < 10.0
    assert person.eval("document.querySelectorAll('#chart path').length") == 3
    person.check_looks(tmp_path, "play")
    # on a phone the question and all that answers it are in sight, and large enough for a thumb
    for button in ("yes", "no", "computer"):
        box = f"document.getElementById('{button}').getBoundingClientRect()"
        assert person.eval(f"{box}.bottom") < 700
        assert person.eval(f"{box}.height") >= 44
    assert person.complaints() == []


@needs_chromium
def test_somebody_teaches_by_keyboard(person, handler):
    person.key("y")
    person.key("N")
    assert person.text("count") == "2 answers, all of them yours"
    person.key("c", modifiers=2)  # Ctrl-C is the browser's
    assert handler.game.answers == 2
    focused = []
    for _ in range(4):
        person.key("Tab")
        focused.append(person.eval("document.activeElement.id"))
        outline = person.eval("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", "where the focus is must be seen"
    assert focused == ["yes", "no", "computer", "again"]
    person.eval("document.getElementById('no').focus()")
    person.key(" ")
    assert handler.game.answers == 3
    assert person.eval("document.activeElement.id") == "no"  # to go on from there
    assert person.eval("document.getElementById('message').getAttribute('aria-live')") == "polite"
    person.key("r")
    assert handler.game.answers == 0
    assert person.text("count") == ""
    assert person.complaints() == []


@needs_chromium
def test_an_answer_against_the_data_is_believed_and_told(person, handler):
    right = handler.game.label in handler.game.shown
    label = handler.game.label
    person.press("#no" if right else "#yes")
    assert f"The data say it was {label}; it learns from your answer all the same." in person.text("message")


@needs_chromium
def test_two_windows_and_an_end(person, handler, server):
    handler.game.answer(0, True)  # in another window
    person.press("#yes")
    assert "Another window was faster" in person.text("message")
    assert handler.game.answers == 1
    assert person.text("shown").split() == [str(label) for label in handler.game.shown]
    server.stop()
    person.press("#yes")
    assert "has ended" in person.text("message")


# ---------------------------------------------------------------- the server


def test_the_page_is_closed_to_strangers():
    handler = GameHandler()
    with serve_game(handler) as server:
        web = Web(server.port)
        check_closed_to_strangers(web, post="/answers")
        for body in ({"count": 0}, {"count": 1_001}, {"count": "many"}, {}):
            assert web("POST", "/computer", body)[0] == 422
        assert web("POST", "/answers", {"question": 7, "hit": True})[0] == 422
        assert handler.game.answers == 0
        assert web("POST", "/answers", {"question": 0, "hit": True})[0] == 200
        before = handler.game
        assert web("POST", "/game", {})[1]["question"] == 0
        assert handler.game is not before
        with pytest.raises(
            InvalidInput, match=f"--port of superarm play must be free, on 127.0.0.1:{web.port}"
        ):
            asyncio.run(play(handler, web.port, print))


# ---------------------------------------------------------------- the command


def test_the_command_prints_its_address_and_ends_quietly(tmp_path):
    with Command(tmp_path, "play") as command:
        port = int(command.address.removeprefix("http://127.0.0.1:").strip("/"))
        assert Web(port)("GET", "/game")[1]["question"] == 0
        command.end()
