"""The page of `superarm play` and the four routes behind it, for one person on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from secrets import randbelow
from typing import Any

from superarm.play.game import GAMMA, HELD_OUT, LEARNERS, Game
from superarm.service.http.admission import OPEN, Admission
from superarm.service.http.guard import Limits
from superarm.service.http.pages import page_of
from superarm.service.http.request import Response
from superarm.service.http.router import Route, Router
from superarm.service.http.server import Listener, Server
from superarm.service.http.tokens import Tokens
from superarm.service.messages import Strict


class Answer(Strict):
    """A person's answer."""

    question: int
    hit: bool


class Count(Strict):
    """How often the computer is to answer."""

    count: int


class Play:
    """What the routes work with: the game that is on.

    Args:
        seed: of the first game; every other one gets one at random.
    """

    def __init__(self, seed: int = 0) -> None:
        self.game = Game(seed)

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        game, last = self.game, self.game.last_answer
        return {
            "question": game.answers,
            "by_person": game.by_person,
            "picture": [int(value) for value in game.x],
            "shown": game.shown,
            "beliefs": game.beliefs(),
            "last_answer": last and {"shown": last.shown, "hit": last.hit, "label": last.label},
            "learners": LEARNERS,
            "errors": game.curve[-1][1:] if game.curve else game.errors(),
            "curve": game.curve,
            "held_out": HELD_OUT,
            "lessons": game.lessons,
            "gamma": GAMMA,
        }

    def page(self) -> Response:
        return page_of("superarm.play", "page.html")

    def icon(self) -> Response:
        return Response(204)

    def answer(self, given: Answer) -> dict[str, Any]:
        self.game.answer(given.question, given.hit)
        return self.state()

    def computer(self, how_many: Count) -> dict[str, Any]:
        self.game.answer_itself(how_many.count)
        return self.state()

    def restart(self) -> dict[str, Any]:
        self.game = Game(randbelow(2**31))
        return self.state()


ROUTES = (
    Route("GET", "/", OPEN, Play.page),
    Route("GET", "/favicon.ico", OPEN, Play.icon),
    Route("GET", "/game", OPEN, Play.state),
    Route("POST", "/game", OPEN, Play.restart),
    Route("POST", "/answers", OPEN, Play.answer, takes=Answer),
    Route("POST", "/computer", OPEN, Play.computer, takes=Count),
)


async def play(game: Play, port: int, on_ready: Callable[[str], object]) -> None:
    """Serve the page on the loopback address until cancelled; ``on_ready`` is told where."""
    router = Router(ROUTES, Admission(Tokens(), rate=1_000.0))
    router.context = game
    server = Server(router, Listener(port=port, owner="superarm play"), Limits(connections=100))
    server.on_ready = lambda: on_ready(f"http://127.0.0.1:{server.port}/")
    try:
        await server.serve()
    except asyncio.CancelledError:
        await server.shutdown()
        raise
