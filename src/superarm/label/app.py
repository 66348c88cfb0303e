"""The page of `superarm label` and the routes behind it, for one person on this machine, or several by token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from superarm._types import Cell, JsonObject
from superarm.errors import InvalidInput, Unquoted
from superarm.http.access import PERSON, Tokens
from superarm.http.listener import Listener, check_exposure
from superarm.http.pages import load_page
from superarm.http.request import Response
from superarm.http.router import Route
from superarm.http.server import serve_page
from superarm.label.names import TABLE_AS_PERSON, check_person
from superarm.label.question import Question, word_weights
from superarm.service.messages import RequestBody

if TYPE_CHECKING:
    from superarm.label.labelling import Labelling

OWNER = "superarm label"
# what a key does; "labels" has one for each button, in their order
KEYS = {"labels": "123456789", "none": "n", "yes": "y", "no": "n", "skip": "s", "undo": "u", "search": "/"}
MAX_TEXT = 20_000  # characters of one value that a page shows
MAX_DISAGREEMENTS = 100  # that a page shows


class AnswerRequest(RequestBody):
    """An answer: a label, none of those shown, or yes or no about all of them."""

    question: str
    label: str | None = None
    none: bool = False
    yes: bool | None = None


class SkipRequest(RequestBody):
    """The question that is skipped."""

    question: str


class NewLabel(RequestBody):
    """The name of a new label."""

    name: str


class FinalLabel(RequestBody):
    """The label of a row, or null: none fits, whatever was said before."""

    row: int
    label: str | None


class PictureQuery(RequestBody):
    """The row whose picture is wanted."""

    row: int


class PeopleTokens(Tokens):
    """Tokens of people: in the file, one a line, each after its person's name. All may do the same.

    Args:
        file: the file.
    """

    line_format = f"a name without spaces and commas, not {TABLE_AS_PERSON!r}, and a token"
    owner = OWNER

    def role_of(self, name: str) -> str | None:
        try:
            check_person(name)
        except InvalidInput:
            return None
        return "person"


class LabellingHandler:
    """Handles the requests of the page.

    Args:
        job: the labelling.
        keys: of the page, by what they do.
    """

    def __init__(self, job: Labelling, keys: Mapping[str, str]) -> None:
        self.job, self.keys = job, keys

    def question(self, person: str) -> JsonObject:
        return self._state(person, self.job.ask(by=person))

    def answer(self, person: str, request: AnswerRequest) -> JsonObject:
        self.job.answer(request.question, label=request.label, none=request.none, yes=request.yes, by=person)
        return self.question(person)

    def skip(self, person: str, request: SkipRequest) -> JsonObject:
        self.job.skip(request.question, by=person)
        return self.question(person)

    def undo(self, person: str) -> JsonObject:
        """Return the question whose answer was taken back; with nothing to take back, the one that is open."""
        question = self.job.undo(by=person)
        if question is None:
            return {**self.question(person), "undone": False}
        return {**self._state(person, question), "undone": True}

    def add_label(self, person: str, new: NewLabel) -> JsonObject:
        self.job.add_label(new.name, by=person)
        return {"labels": self.job.label_names}

    def picture(self, query: PictureQuery) -> Response:
        picture = self.job.rows.picture(query.row)
        if picture is None:
            raise InvalidInput.must("row", "request", "one with a picture", query.row)
        return Response(200, picture.content, picture.media_type.encode("ascii"))

    def disagreements(self) -> JsonObject:
        """Return how many rows have answers that contradict each other, and the first of them."""
        conflicts = self.job.disagreements()
        pictures = self.job.rows.pictures is not None
        rows = [
            conflict | {"values": _texts(conflict["values"]), "picture": pictures}
            for conflict in conflicts[:MAX_DISAGREEMENTS]
        ]
        return {"count": len(conflicts), "rows": rows}

    def set_final(self, person: str, request: FinalLabel) -> JsonObject:
        self.job.set_final_label(request.row, request.label, by=person)
        return self.disagreements()

    # ---------------------------------------------------------------- what the page shows

    def _state(self, person: str, question: Question | None) -> JsonObject:
        """Return all that the page shows one person: nothing of audits, since people would look more closely."""
        progress = self.job.progress()
        numbers = asdict(progress)
        del numbers["audits"]
        return numbers | {
            "person": person,
            "question": question and self._without_beliefs(question),
            "labels": self.job.label_names,
            "keys": self.keys,
            "export": export_command(self.job),
            "sentence": progress.finished and str(progress),
            "remaining_text": progress.remaining_text,
        }

    def _without_beliefs(self, question: Question) -> JsonObject:
        """Return a question without what would lead people: how sure the model is, and whether it is an audit."""
        return {
            "id": question.id,
            "row": question.row,
            "values": _texts(question.values),
            "picture": self.job.rows.pictures is not None,
            "labels": question.labels,
            "yes_no": question.yes_no,
            "reasons": word_weights(self.job, question),
        }


ROUTES = (
    Route("GET", "/question", PERSON, LabellingHandler.question),
    Route("POST", "/answer", PERSON, LabellingHandler.answer),
    Route("POST", "/skip", PERSON, LabellingHandler.skip),
    Route("POST", "/undo", PERSON, LabellingHandler.undo),
    Route("POST", "/labels", PERSON, LabellingHandler.add_label),
    Route("GET", "/picture", PERSON, LabellingHandler.picture),
    Route("GET", "/disagreements", PERSON, LabellingHandler.disagreements),
    Route("POST", "/final", PERSON, LabellingHandler.set_final),
)


class LabellingServer:
    """Serves the page. Options that cannot be are refused at once, before a journal is made.

    Args:
        port: to listen on; 0: any free one.
        host: the address to listen on; others than loopback need tokens.
        token_file: of several people; without, everybody on this machine is one person without a name.
        keys: other keys than `KEYS`, by what they do.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        token_file: Path | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self._keys = _checked_keys(keys or {})
        self._tokens = Tokens() if token_file is None else PeopleTokens(token_file)
        self._listener = Listener(host, port, owner=OWNER)
        check_exposure(self._listener, self._tokens)
        with self._listener.bind():  # an address in use is refused now
            pass

    async def serve(self, job: Labelling, on_ready: Callable[[str], object]) -> None:
        """Serve the page of a labelling until cancelled; ``on_ready`` gets its address."""
        page = load_page("superarm.label", "page.html", pictures=True)
        handler = LabellingHandler(job, self._keys)
        await serve_page(page, ROUTES, handler, self._listener, on_ready, self._tokens)


def export_command(job: Labelling) -> str | None:
    """Return the command that writes the labels to a file; None without a journal."""
    store = job.journal.store
    return None if store is None else f"superarm labels export {quote(store.name)} --output labelled.csv"


def _texts(values: Mapping[str, Cell]) -> list[tuple[str, str]]:
    """Return names and values as texts, without raw pictures."""
    return [(str(name), _text(value)) for name, value in values.items() if not isinstance(value, bytes)]


def _text(value: Cell) -> str:
    text = str(value)
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… (the first {MAX_TEXT:,} of {len(text):,} characters)"


def _checked_keys(changed: Mapping[str, str]) -> dict[str, str]:
    """Return all keys, some of them changed; an error if one has two meanings."""
    for action, key in changed.items():
        if action not in KEYS:
            raise InvalidInput.must("--keys", OWNER, f"for {', '.join(KEYS)}", action, choices=KEYS)
        if not key or not key.isprintable() or " " in key or (action != "labels" and len(key) != 1):
            raise InvalidInput.must("--keys", OWNER, f"a visible character for {action}", key)
    keys = {action: key.lower() for action, key in {**KEYS, **changed}.items()}
    for answers in (("labels", "none"), ("yes", "no")):
        together = "".join(keys[action] for action in (*answers, "skip", "undo", "search"))
        for key in together:
            if together.count(key) > 1:
                raise InvalidInput.must("--keys", OWNER, "distinct", Unquoted(f"{key} twice"))
    return keys
