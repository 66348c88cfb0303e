"""The page of `superarm play` and the routes behind it, for one person on this machine."""

from __future__ import annotations

from collections.abc import Callable
from secrets import randbelow

from superarm._types import JsonObject
from superarm.http.access import OPEN
from superarm.http.listener import Listener
from superarm.http.pages import load_page
from superarm.http.router import Route
from superarm.http.server import serve_page
from superarm.play.game import GAMMA, LEARNERS, Game
from superarm.service.messages import RequestBody


class Answer(RequestBody):
    """A person's answer."""

    question: int
    hit: bool


class Count(RequestBody):
    """How many answers the computer is to give."""

    count: int


class GameHandler:
    """Handles the requests of the page: the context of the routes.

    Args:
        seed: of the first game; every other one gets one at random.
    """

    def __init__(self, seed: int = 0) -> None:
        self.game = Game(seed)

    def state(self) -> JsonObject:
        """Return all that the page shows."""
        game = self.game
        return {
            "question": game.answers,
            "by_person": game.by_person,
            "picture": [int(value) for value in game.x],
            "shown": game.shown,
            "probabilities": game.probabilities(),
            "last_answer": game.last_answer,
            "learners": LEARNERS,
            "errors": game.curve[-1][1:] if game.curve else game.errors(),
            "curve": game.curve,
            "n_test": len(game.test),
            "n_training": len(game.training),
            "gamma": GAMMA,
        }

    def answer(self, answer: Answer) -> JsonObject:
        self.game.answer(answer.question, answer.hit)
        return self.state()

    def computer(self, answers: Count) -> JsonObject:
        self.game.answer_by_computer(answers.count)
        return self.state()

    def restart(self) -> JsonObject:
        self.game = Game(randbelow(2**31))
        return self.state()


ROUTES = (
    Route("GET", "/game", OPEN, GameHandler.state),
    Route("POST", "/game", OPEN, GameHandler.restart),
    Route("POST", "/answers", OPEN, GameHandler.answer),
    Route("POST", "/computer", OPEN, GameHandler.computer),
)


async def play(handler: GameHandler, port: int, on_ready: Callable[[str], object]) -> None:
    """Serve the page on the loopback address until cancelled; ``on_ready`` gets its address."""
    page = load_page("superarm.play", "page.html")
    listener = Listener(port=port, owner="superarm play")
    await serve_page(page, ROUTES, handler, listener, on_ready)
