"""What goes in and comes out, for the OpenAPI document. (requests.py does the checking: it is quicker.)"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:\-]{1,128}$", examples=["order-4711"])]
Number = Annotated[float, Field(ge=-3.4e38, le=3.4e38)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SparseRow(Strict):
    indices: list[Annotated[int, Field(ge=0)]] = Field(examples=[[3, 17]])
    values: list[Number] = Field(examples=[[1.0, 0.5]])


class DecisionRequest(Strict):
    """A request for a set."""

    features: list[Number] | SparseRow | dict[str, Number | bool | str] = Field(
        description="All n_features numbers; a sparse row; or names, hashed into n_features places.",
        examples=[
            [0.5, 0.0, 1.0, 0.25],
            {"indices": [3, 17], "values": [1.0, 0.5]},
            {"age": 41, "colour": "red"},
        ],
    )
    id: Id | None = Field(
        None, description="Your key: the same request with the same id gives the same set again."
    )
    eligible: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="The only labels that may be shown this time."
    )
    set_size: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How many labels to show this time."
    )
    context: Any = Field(None, description="Anything to be kept with the decision.")


class DecisionAnswer(BaseModel):
    """A set to show."""

    id: str
    labels: list[str] = Field(description="In the order to show: best first.")
    propensity: float | None = Field(description="The probability with which this set was chosen.")
    model_version: int = Field(description="How many answers the model had learnt.")


class OutcomeRequest(Strict):
    """The answer: hit, or label; one of them."""

    hit: bool | None = Field(None, description="Whether the right label was among the shown ones.")
    label: str | None = Field(None, description="The right label, where the world names it.")


class Outcome(BaseModel):
    hit: bool | None = Field(description="null only for a timeout without a default outcome.")
    label: str | None
    time: float = Field(description="Seconds since 1970.")
    learnt: bool
    late: bool = Field(description="It came after the timeout.")
    timeout: bool = Field(description="It is the timeout's, not the world's.")


class OutcomeAnswer(BaseModel):
    id: str
    outcome: Outcome


class DecisionRecord(DecisionAnswer):
    """All that is known of a decision."""

    time: float
    state: str = Field(examples=["pending", "answered", "expired", "answered late"])
    features: list[float] | SparseRow
    top: list[str] = Field(description="The top set: what would have been shown without exploration.")
    eligible: list[str] | None
    set_size: int
    context: Any
    outcome: Outcome | None


class PendingItem(BaseModel):
    id: str
    time: float
    age: float = Field(description="Seconds.")


class Pending(BaseModel):
    pending: list[PendingItem] = Field(description="Oldest first.")
    count: int = Field(description="How many there are in all.")
    next: int | None = Field(description="Give it as `after` to get the following ones.")


class BatchItemOutcome(OutcomeRequest):
    id: Id


class DecisionBatch(Strict):
    decisions: Annotated[list[DecisionRequest], Field(min_length=1, max_length=1000)]


class OutcomeBatch(Strict):
    outcomes: Annotated[list[BatchItemOutcome], Field(min_length=1, max_length=1000)]


class Fault(BaseModel):
    status: int
    field: str | None = Field(description="The field at fault.")
    message: str


class Error(BaseModel):
    error: Fault


class DecisionResults(BaseModel):
    """One result for each item, in their order; an item that was refused has an error in its place."""

    results: list[DecisionAnswer | Error]


class OutcomeResults(BaseModel):
    results: list[OutcomeAnswer | Error]


class Info(BaseModel):
    learner: str
    learner_id: str
    labels: list[str]
    n_features: int
    set_size: int
    model_version: int
    timeout: float | None
    default_outcome: bool | None
    superarm: str


REQUESTS: dict[str, type[BaseModel]] = {
    model.__name__: model for model in (DecisionRequest, OutcomeRequest, DecisionBatch, OutcomeBatch)
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "DecisionRequest": {
        "named": {
            "summary": "named features",
            "value": {"features": {"age": 41, "colour": "red"}, "id": "order-4711"},
        },
        "sparse": {
            "summary": "a sparse row",
            "value": {"features": {"indices": [0, 3], "values": [1.0, 0.5]}},
        },
        "limited": {
            "summary": "a smaller set, and something to be kept with it",
            "value": {"features": {"age": 41}, "set_size": 2, "context": {"page": "/home"}},
        },
    },
    "OutcomeRequest": {
        "bit": {"summary": "was the right label among them?", "value": {"hit": True}},
        "miss": {"summary": "it was not", "value": {"hit": False}},
    },
    "DecisionBatch": {
        "two": {"value": {"decisions": [{"features": {"age": 41}}, {"features": {"age": 23}}]}}
    },
    "OutcomeBatch": {
        "two": {"value": {"outcomes": [{"id": "order-1", "hit": True}, {"id": "order-2", "hit": False}]}}
    },
}
