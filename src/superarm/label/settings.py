"""Settings of a labelling. They are kept in its journal, and taken from there where they are left out."""

from __future__ import annotations

from msgspec import Struct, field

from superarm._types import JsonObject
from superarm.errors import InvalidInput
from superarm.parameters import check_int, check_number, check_share

OWNER = "Labelling"
FIXED = ("yes_no", "seed")  # settings with which a journal is made, and which cannot change in it


class LabellingSettings(Struct, frozen=True, kw_only=True):
    """What a labelling is made for.

    Attributes:
        labels: the names of the labels to begin with.
        rows: where the rows are.
        read_options: how the rows are read: arguments of `RowsToLabel.read`.
        target: the share of labels that shall be right; 1: every row is asked about.
        yes_no: whether questions are answered with yes or no.
        max_labels: how many labels a question shows at most.
        show: the columns that people see; all, if empty.
        second_opinion_share: the share of rows that are asked about a second time.
        seed: for the order of rows and for the model.
    """

    labels: list[str]
    rows: str
    read_options: JsonObject
    yes_no: bool
    seed: int
    target: float = 0.99
    max_labels: int = 5
    show: list[str] = field(default_factory=list)
    second_opinion_share: float = 0.0

    def __post_init__(self) -> None:
        check_number("target", OWNER, self.target, 0.0)
        if not 0.5 <= self.target <= 1.0:
            raise InvalidInput.must("target", OWNER, "a share of right labels from 0.5 to 1", self.target)
        check_share("second_opinion_share", OWNER, self.second_opinion_share)
        check_int("max_labels", OWNER, self.max_labels, 1)
        check_int("seed", OWNER, self.seed, 0)
