"""The page of `superarm label` and the routes behind it, for one person on this machine, or several by token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any

from superarm.errors import InvalidInput
from superarm.label.people import People
from superarm.label.question import Question, reasons
from superarm.service.http.admission import OPEN, PERSON, Admission
from superarm.service.http.exchange import Response
from superarm.service.http.guard import Limits
from superarm.service.http.messages import Strict
from superarm.service.http.pages import page_of
from superarm.service.http.router import Route, Router
from superarm.service.http.server import Listener, Server, check_exposure
from superarm.service.http.tokens import Tokens

if TYPE_CHECKING:
    from superarm.label.job import Labelling

OWNER = "superarm label"
# what a key does; "labels" has one for each button, in their order
KEYS = {"labels": "123456789", "none": "n", "yes": "y", "no": "n", "skip": "s", "undo": "u", "search": "/"}
MOST_TEXT = 20_000  # characters of one value that a page shows
MOST_INLINE = 1 << 16  # bytes of a picture that comes with its question
MOST_ROWS = 100  # of disagreements
REFRESH_SECONDS = 1.0
PROGRESS = ("rows", "labelled", "clicks", "target", "wrong", "interval", "outlook", "finished", "curve")


class Answer(Strict):
    """One of the three: a label, none of those shown, or yes or no about all of them."""

    question: str
    label: str | None = None
    none: bool = False
    yes: bool | None = None


class Skip(Strict):
    """A question that somebody leaves to others."""

    question: str


class NewLabel(Strict):
    """A label that was missing."""

    name: str


class Settled(Strict):
    """What a row is, whatever was said before."""

    row: int
    label: str


class PictureQuery(Strict):
    """Which row's picture."""

    row: int


class LabellingPage:
    """What the routes work with.

    Args:
        job: the labelling that is on.
        keys: other keys than `KEYS`, by what they do.
    """

    def __init__(self, job: Labelling, keys: Mapping[str, str] | None = None) -> None:
        self.job, self.keys = job, _check_keys(keys or {})

    # ---------------------------------------------------------------- what the page shows

    def state(self, person: str, question: Question | None) -> dict[str, Any]:
        """All that the page shows one person."""
        return {
            "person": person,
            "question": question and self._without_beliefs(question),
            "labels": self.job.label_names,
            "keys": self.keys,
            "export": export_command(self.job),
            **self.progress(),
        }

    def progress(self) -> dict[str, Any]:
        """How far all of them are. Which questions are audits is nothing that people should learn."""
        now = self.job.progress()
        return {name: getattr(now, name) for name in PROGRESS} | {"sentence": now.finished and now.sentence}

    def _without_beliefs(self, question: Question) -> dict[str, Any]:
        """A question without what would lead people: how sure the model is, and whether it would have asked."""
        return {
            "id": question.id,
            "row": question.number,
            "values": _values(question.row),
            "picture": self._picture(question) if question.picture else None,
            "labels": question.labels,
            "yes_no": question.yes_no,
            "reasons": reasons(self.job, question),
        }

    def _picture(self, question: Question) -> dict[str, Any]:
        """With a small picture in it, which spares the page a second request."""
        data, kind = self.job.picture(question.number) or (b"", "")
        return {"kind": kind, "data": data} if len(data) <= MOST_INLINE else {}

    # ---------------------------------------------------------------- the routes

    def page(self) -> Response:
        return page_of("superarm.label", "page.html", pictures=True)

    def icon(self) -> Response:
        return Response(204)

    def question(self, person: str) -> dict[str, Any]:
        return self.state(person, self.job.ask(by=person))

    def answer(self, person: str, given: Answer) -> dict[str, Any]:
        self.job.answer(given.question, label=given.label, none=given.none, yes=given.yes, by=person)
        return self.question(person)

    def skip(self, person: str, given: Skip) -> dict[str, Any]:
        self.job.skip(given.question, by=person)
        return self.question(person)

    def undo(self, person: str) -> dict[str, Any]:
        """The question whose answer was taken back; with nothing to take back, the one that is open."""
        again = self.job.undo(by=person)
        if again is None:
            return {**self.question(person), "undone": False}
        return {**self.state(person, again), "undone": True}

    def add_label(self, person: str, new: NewLabel) -> dict[str, Any]:
        self.job.add_label(new.name, by=person)
        return {"labels": self.job.label_names}

    def picture(self, row: PictureQuery) -> Response:
        picture = self.job.picture(row.row)
        if picture is None:
            raise InvalidInput.must("row", "request", "one with a picture", row.row)
        return Response(200, picture[0], picture[1].encode("ascii"))

    def disagreements(self) -> dict[str, Any]:
        """Rows whose answers contradict each other: how many, and the first MOST_ROWS of them."""
        conflicts, pictures = self.job.disagreements(), self.job.rows.pictures is not None
        rows = [
            {
                "row": row["number"],
                "values": _values(row["row"]),
                "answers": row["answers"],
                "picture": pictures,
            }
            for row in conflicts[:MOST_ROWS]
        ]
        return {"count": len(conflicts), "rows": rows}

    def settle(self, person: str, given: Settled) -> dict[str, Any]:
        self.job.settle(given.row, given.label, by=person)
        return self.disagreements()


ROUTES = (
    Route("GET", "/", OPEN, LabellingPage.page),
    Route("GET", "/favicon.ico", OPEN, LabellingPage.icon),
    Route("GET", "/question", PERSON, LabellingPage.question, personal=True),
    Route("GET", "/progress", PERSON, LabellingPage.progress),
    Route("POST", "/answer", PERSON, LabellingPage.answer, takes=Answer, personal=True),
    Route("POST", "/skip", PERSON, LabellingPage.skip, takes=Skip, personal=True),
    Route("POST", "/undo", PERSON, LabellingPage.undo, personal=True),
    Route("POST", "/labels", PERSON, LabellingPage.add_label, takes=NewLabel, personal=True),
    Route("GET", "/picture", PERSON, LabellingPage.picture, takes=PictureQuery),
    Route("GET", "/disagreements", PERSON, LabellingPage.disagreements),
    Route("POST", "/settle", PERSON, LabellingPage.settle, takes=Settled, personal=True),
)


def check_page(
    port: int, tokens: People | None = None, keys: Mapping[str, str] | None = None, *, host: str = "127.0.0.1"
) -> Listener:
    """Refuse what `serve_labelling` cannot be given, a port that is taken included; where it will listen."""
    _check_keys(keys or {})
    listener = Listener(host, port, owner=OWNER)
    check_exposure(listener, tokens or Tokens())
    listener.bind().close()
    return listener


async def serve_labelling(
    job: Labelling,
    port: int,
    on_ready: Callable[[str], object],
    tokens: People | None = None,
    keys: Mapping[str, str] | None = None,
    *,
    host: str = "127.0.0.1",
) -> None:
    """Serve the page until cancelled.

    Args:
        job: what is labelled.
        port: to listen on; 0: any free one.
        on_ready: told the page's address.
        tokens: of several people; without, everybody on this machine is one person without a name.
        keys: other keys than `KEYS`, by what they do.
        host: the address to listen on; others than loopback need tokens.
    """
    listener, admission = (
        check_page(port, tokens, keys, host=host),
        Admission(tokens or Tokens(), rate=1_000.0),
    )
    router = Router(ROUTES, admission)
    router.context = LabellingPage(job, keys)
    server = Server(router, listener, Limits(connections=500))
    name = f"[{host}]" if ":" in host else host
    server.on_ready = lambda: on_ready(f"http://{name}:{server.port}/")
    refreshing = asyncio.create_task(_refresh(admission.tokens))
    try:
        await server.serve()
    except asyncio.CancelledError:
        await server.shutdown()
        raise
    finally:
        refreshing.cancel()


def export_command(job: Labelling) -> str | None:
    """The command that writes the labels to a file; None without a journal."""
    store = job.journal.store
    if store is None:
        return None
    return f"superarm labels export {quote(store.name)} --output labelled.csv"


async def _refresh(tokens: Tokens) -> None:
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        tokens.refresh()


def _values(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and texts; raw pictures have none."""
    return [(str(name), _text(value)) for name, value in row.items() if not isinstance(value, bytes)]


def _text(value: Any) -> str:
    text = "" if value is None or value != value else str(value)
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}… (the first {MOST_TEXT:,} of {len(text):,} characters)"


def _check_keys(keys: Mapping[str, str]) -> dict[str, str]:
    for action, key in keys.items():
        if action not in KEYS:
            raise InvalidInput.must("--keys", OWNER, f"for {', '.join(KEYS)}", action, choices=KEYS)
        if not key or not key.isprintable() or " " in key or (action != "labels" and len(key) != 1):
            raise InvalidInput.must("--keys", OWNER, f"a visible character for {action}", key)
    chosen = {action: key.lower() for action, key in {**KEYS, **keys}.items()}
    together = chosen["labels"] + "".join(chosen[a] for a in ("none", "skip", "undo", "search"))
    with_yes = "".join(chosen[action] for action in ("yes", "no", "skip", "undo", "search"))
    for group in (together, with_yes):
        for key in group:
            if group.count(key) > 1:
                raise InvalidInput.must("--keys", OWNER, "distinct", f"{key} twice")
    return chosen
