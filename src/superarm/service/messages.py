"""Bodies of requests and responses. Each type checks a body, and is its part of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from superarm.data.rows import FLOAT32_MAX
from superarm.decisions.ids import ID_PATTERN

BATCH_SIZE = Meta(min_length=1, max_length=1_000)


def doc(description: str, **schema: Any) -> Meta:
    """Return the description of a field, for the OpenAPI document."""
    return Meta(description=description, **schema)


def _one_of(*names: str) -> Meta:
    """Return the schema of what msgspec does not decode here."""
    references = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return Meta(extra_json_schema=references[0] if len(references) == 1 else {"anyOf": references})


Id = Annotated[str, Meta(pattern=ID_PATTERN, examples=["order-4711"])]
Number = Annotated[float, Meta(ge=-FLOAT32_MAX, le=FLOAT32_MAX)]
SetSize = Annotated[int, Meta(ge=1)]
Time = Annotated[float, doc("Seconds since 1970.")]
Hit = Annotated[bool | None, doc("Whether the right label was among the shown ones.")]
RightLabel = Annotated[str | None, doc("The right label, where it is known.")]
PromisedCoverage = Annotated[float, Meta(gt=0, lt=1)]
Features = list[Number] | dict[str, Number | bool | str | list[Number] | None]
LabelScores = Annotated[dict[str, Number], Meta(min_length=1)]
Eligible = Annotated[list[str], Meta(min_length=1)]


class RequestBody(Struct, forbid_unknown_fields=True):
    """The body of a request; unknown fields are refused."""


# ---------------------------------------------------------------- decisions


class DecisionRequestBody(RequestBody):
    """A request for a set."""

    features: Annotated[
        Features | None,
        doc(
            "The row; or give `scores`. All n_features numbers; a sparse row of indices and values (and dense, "
            "where rows have both parts); or names, each with a number, a word, a text, true, false, a date "
            "(2026-05-01), a list of numbers or null. The first row decides which."
        ),
    ] = None
    scores: Annotated[
        LabelScores | None,
        doc(
            "In place of features, where the service was made for them (--learner scores): a model of your own "
            "ranks the labels. Logarithms of probabilities; labels without a score are not shown."
        ),
    ] = None
    id: Annotated[Id | None, doc("Your key: the same request with the same id gives the same set again.")] = (
        None
    )
    eligible: Annotated[Eligible | None, doc("The only labels that may be shown this time.")] = None
    set_size: Annotated[
        SetSize | None, doc("How many labels to show this time; with a promised coverage, the most.")
    ] = None
    coverage: Annotated[
        PromisedCoverage | None, doc("Another promise for this time, where the service has one.")
    ] = None
    context: Annotated[
        Any, doc("Anything to be kept with the decision: at most 64 KiB of JSON, 64 deep.")
    ] = None


class DecisionResponse(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A set to show."""

    id: str
    labels: Annotated[tuple[str, ...], doc("In the order to show: best first.")]
    propensity: Annotated[float | None, doc("The probability with which this set was chosen.")]
    model_version: Annotated[int, doc("How many outcomes the model had learnt.")]
    warnings: Annotated[
        tuple[str, ...], doc("Columns of the row that are not what was declared; left out if there are none.")
    ] = ()


class OutcomeRequestBody(RequestBody):
    """An outcome: hit, or label; one of them."""

    hit: Hit = None
    label: RightLabel = None


class OutcomeRequest(RequestBody):
    """The outcome of a decision, as in a batch: hit, or label; one of them."""

    id: Id
    hit: Hit = None
    label: RightLabel = None


class Outcome(Struct, frozen=True):
    """An outcome, as the service has recorded it."""

    hit: Annotated[bool | None, doc("null only for a timeout without a default outcome.")]
    label: str | None
    time: Time
    learnt: Annotated[
        bool | None, doc("Whether it has moved the model; null until this process has projected it.")
    ]
    late: Annotated[bool, doc("It came after the timeout.")]
    timeout: Annotated[bool, doc("It is the default of a timeout, and was not observed.")]


class OutcomeResponse(Struct):
    id: str
    outcome: Outcome


class DecisionRecordBody(DecisionResponse, kw_only=True, frozen=True):
    """All that is known of a decision."""

    time: Time
    state: Annotated[str, Meta(examples=["pending", "answered", "expired", "answered late"])]
    features: Annotated[
        list[float] | dict[str, Any] | None,
        doc("As they came, a sparse row as indices and values, or the scores; null if they were erased."),
    ]
    top: Annotated[list[str], doc("The top set: what exploration departs from.")]
    eligible: list[str] | None
    set_size: int
    context: Any
    erased: Annotated[bool, doc("Whether features and context were erased.")]
    outcome: Outcome | None


class DecisionBatch(RequestBody):
    decisions: Annotated[list[Annotated[Raw, _one_of("DecisionRequestBody")]], BATCH_SIZE]


class OutcomeBatch(RequestBody):
    outcomes: Annotated[list[Annotated[Raw, _one_of("OutcomeRequest")]], BATCH_SIZE]


class DecisionResults(Struct):
    """One result for each item, in their order; an item that was refused has an error in its place."""

    results: list[Annotated[Any, _one_of("DecisionResponse", "Error")]]


class OutcomeResults(Struct):
    """One result for each item, in their order; an item that was refused has an error in its place."""

    results: list[Annotated[Any, _one_of("OutcomeResponse", "Error")]]


# ---------------------------------------------------------------- views


class PendingQuery(RequestBody):
    limit: Annotated[int, doc("How many at most.", ge=1, le=1000)] = 100
    after: Annotated[int, doc("The `next` of the page before.", ge=0, le=2**63 - 1)] = 0


class PendingItem(Struct):
    id: str
    time: Time
    age: Annotated[float, doc("Seconds.")]


class PendingBody(Struct):
    pending: Annotated[list[PendingItem], doc("Oldest first.")]
    count: Annotated[int, doc("How many there are in all.")]
    next: Annotated[int | None, doc("Give it as `after` to get the following ones.")]


class Info(Struct):
    learner: str
    learner_id: str
    params: Annotated[dict[str, Any], doc("The learner's parameters as they are now.")]
    labels: list[str]
    disabled: Annotated[list[str], doc("Labels that are never shown.")]
    frozen: Annotated[bool, doc("Outcomes are kept, and not learnt.")]
    n_features: Annotated[
        int | Annotated[list[int], Meta(min_length=2, max_length=2)] | None,
        doc("Of rows with both parts a pair, dense and sparse; null before the first row."),
    ]
    set_size: Annotated[int, doc("With a coverage, the most.")]
    coverage: Annotated[float | None, doc("How often the right label is to be shown, if that is promised.")]
    model_version: int
    timeout: float | None
    default_outcome: bool | None
    superarm: str


class Status(Struct, omit_defaults=True):
    status: str
    trouble: Annotated[list[str], doc("What is wrong, worst first.")] = []


class SnapshotItem(Struct):
    """A kept snapshot, and what made it."""

    seq: Annotated[int, doc("The event that it stands after.")]
    time: Time
    superarm: str
    cpu: str


class Snapshots(Struct):
    snapshots: Annotated[list[SnapshotItem], doc("Oldest first: where `rollback` can go to.")]


# ---------------------------------------------------------------- changes (journal/changes.py has their requests)


class ChangeResponse(Struct):
    """The result of a change."""

    what: str
    seq: Annotated[int, doc("The number of the last event.")]
    labels: Annotated[list[str], doc("All labels.")]
    disabled: Annotated[list[str], doc("Those that are never shown.")]
    frozen: bool
    erased: Annotated[int, doc("Decisions that lost features and context.")] = 0
    finished: Annotated[bool, doc("false: what was erased is still on the disk somewhere.")] = True


class Changes(Struct):
    changes: Annotated[list[dict[str, Any]], doc("Oldest first: `seq`, `time`, `what` and more.")]
