"""Rule: how a set is chosen from scores. With a learner, or alone on anybody's scores.

A rule is one kernel (kernels/loop.py says what ``choose`` gets), a state of its own, and two answers
in plain Python: what a Decision must record of it, and from that record, how probable any set was.
"""

from __future__ import annotations

import inspect
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from superarm.decision import Decision
from superarm.decisions import Decisions
from superarm.errors import InvalidInput
from superarm.explore.draws import Draw
from superarm.kernels.compiling import kernel
from superarm.labels import Label, Labels
from superarm.named import is_named_row, plain_row
from superarm.parameters import whole
from superarm.rows import as_row, as_rows

__all__ = ["Rule", "choosers", "draw_of", "log_of", "own_order", "rule_from", "rules"]

Array = np.ndarray[Any, Any]
NO_NUMBERS = np.zeros(0)
ROUNDED = 0.01  # probabilities may be off by so much in sum: files have few digits


@kernel
def hear_nothing(rule: Any) -> None:
    """Most rules do not care."""


class Rule(ABC):
    """What all rules share.

    Args:
        set_size: how many labels to show.
        seed: every draw is a pure function of (seed, round, position).
        labels: the names of the labels, if they have names.

    A learner that is given a rule uses its own set_size, seed and labels.
    """

    name: ClassVar[str]  # in records and spec files
    choose: ClassVar[Callable[..., Any]]
    hear: ClassVar[Callable[..., Any]] = hear_nothing  # a kernel that is told when an answer has come
    single_label: ClassVar[bool] = False  # it knows only m = 1
    names_labels: ClassVar[tuple[str, ...]] = ()  # entries of its record that are lists of labels

    def __init__(self, *, set_size: int = 1, seed: int = 0, labels: Sequence[Label] | None = None) -> None:
        of = type(self).__name__
        self.set_size, self.seed = whole("set_size", of, set_size, 1), whole("seed", of, seed, 0)
        if self.single_label and self.set_size != 1:
            raise InvalidInput.must("set_size", of, "1 (it knows no larger sets)", set_size)
        self.labels = None if labels is None else Labels(labels, of).names
        self.round = 0
        self.id = uuid.uuid4().hex[:16]
        self._state: Any = None
        self._tables: dict[tuple[int, int], Any] = {}

    # ------------------------------------------------------------ what a rule defines

    @abstractmethod
    def start(self) -> Any:
        """Its state before the first round: a NamedTuple of numbers and arrays."""

    @abstractmethod
    def scratch(self, k: int) -> Any:
        """Scratch space for up to k labels: a NamedTuple of arrays."""

    def table(self, n: int, m: int) -> Any:
        """What its kernel needs to know about sets of m out of n labels."""
        return 0

    def n_numbers(self, n: int, m: int) -> int:
        """How many numbers ``choose`` writes down, to be asked again, for m out of n labels."""
        return 0

    def kept(self, numbers: Array) -> Array:
        """Those of the numbers that ``choose`` has written; the rest need not wait for an answer."""
        return numbers

    def record(self, numbers: Array, labels: Labels) -> dict[str, Any]:
        """What a Decision keeps: the rule's name, and what `draw` needs of ``numbers`` about ``labels``."""
        return {"name": self.name}

    @classmethod
    @abstractmethod
    def draw(cls, record: dict[str, Any], top: Sequence[Label], eligible: Sequence[Label], m: int) -> Draw:
        """The distribution that a decision was drawn from.

        Args:
            record: what `record` gave.
            top: the top set, best first.
            eligible: the labels that could be shown.
            m: how many were shown.
        """

    # ------------------------------------------------------------ parameters

    @property
    def params(self) -> dict[str, Any]:
        """Its own parameters: all but set_size, seed and labels."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names if name not in ("set_size", "seed", "labels")}

    def to_dict(self) -> dict[str, Any]:
        """The rule in words, as `rule_from` reads it."""
        return {"name": self.name, **self.params}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, *map(repr, self.params.items())))

    # ------------------------------------------------------------ alone, on anybody's scores

    def decide(
        self,
        scores: Any = None,
        *,
        probabilities: Any = None,
        x: Any = None,
        eligible: Iterable[Label] | None = None,
        set_size: int | None = None,
    ) -> Any:
        """Choose a set by somebody's scores of all labels, or by their probabilities: a Decision.

        Args:
            scores: a number for each label; or a matrix with a row for each decision, which gives
                Decisions at compiled speed, the same bits as one by one.
            probabilities: in place of scores.
            x: the row, or the rows, to be kept with the decision.
            eligible: the only labels that may be shown.
            set_size: how many to show.

        >>> from superarm.explore import Dilute
        >>> rule = Dilute(gamma=0.2, set_size=2, labels=["ant", "bee", "cat", "dog"])
        >>> decision = rule.decide(scores=[0.1, 2.0, 0.3, 1.2])
        >>> decision.top, round(decision.propensity, 3)
        (['bee', 'dog'], 0.065)
        """
        s = self._scores(scores, probabilities)
        k, of = s.shape[-1], type(self).__name__
        known = Labels(k if self.labels is None else list(self.labels))
        if k != len(known):
            raise InvalidInput.must("scores", of, f"{len(known)} numbers, one a label", f"{k}")
        among = np.arange(k) if eligible is None else np.sort(known.numbers(eligible, "eligible", of))
        size = self.set_size if set_size is None else whole("set_size", of, set_size, 1)
        n, m = len(among), min(size, len(among))
        if size > k or (self.single_label and size != 1):
            wanted = (
                "1 (it knows no larger sets)" if self.single_label else f"at most {k}, as there are labels"
            )
            raise InvalidInput.must("set_size", of, wanted, size)
        if n == 0:
            raise InvalidInput.must("eligible", of, "distinct labels, at least one", eligible)
        if self._state is None:
            self._state = self.start()
        key, kept = (n, m), None if eligible is None else among
        if key not in self._tables:
            self._tables[key] = self.table(n, m)
        one, many = choosers(type(self))
        if s.ndim == 2:
            return self._decide_many(many, s, x, among, kept, m, known)
        if x is not None:
            x = plain_row(x) if is_named_row(x) else as_row(x, None, of)
        sets, numbers = np.empty((3, m), np.int64), np.zeros(self.n_numbers(n, m))
        odds = one(
            self._state,
            self.scratch(k),
            self._tables[key],
            s,
            among,
            self.seed,
            self.round,
            sets,
            numbers,
        )
        decision = Decision(
            x,
            sets,
            kept,
            odds,
            0.0,
            (self, numbers),
            self.round,
            self.id,
            known,
        )
        self.round += 1
        return decision

    def _decide_many(
        self, choose: Any, s: Array, x: Any, among: Array, kept: Array | None, m: int, known: Labels
    ) -> Decisions:
        rows = None if x is None else as_rows(x, None, type(self).__name__)
        if rows is not None and len(rows) != len(s):
            raise InvalidInput.must("x", type(self).__name__, f"{len(s)} rows, as scores has", f"{len(rows)}")
        sets, odds = np.empty((len(s), 3, m), np.int64), np.zeros((len(s), 3))
        numbers = np.zeros((len(s), self.n_numbers(len(among), m)))
        table, scratch = self._tables[len(among), m], self.scratch(s.shape[1])
        choose(self._state, scratch, table, s, among, self.seed, self.round, sets, numbers, odds)
        rounds = np.arange(self.round, self.round + len(s))
        self.round += len(s)
        return Decisions(rows, sets, kept, odds, self, numbers, rounds, self.id, known)

    def _scores(self, scores: Any, probabilities: Any) -> Array:
        of = type(self).__name__
        if (scores is None) == (probabilities is None):
            raise InvalidInput.must("scores", of, "given, or probabilities in their place", scores)
        what, given = ("scores", scores) if probabilities is None else ("probabilities", probabilities)
        try:
            s = np.array(given, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput.must(what, of, "numbers, one for each label", given) from error
        if s.ndim not in (1, 2) or s.shape[-1] < 2 or not np.isfinite(s).all():
            raise InvalidInput.must(what, of, "finite, one for each of at least two labels", s)
        return (s if probabilities is None else log_of(s, of)).astype(np.float32)


def log_of(p: Array, of: str) -> Array:
    """Scores from probabilities, which must be some."""
    total = p.sum(axis=-1, keepdims=True)
    if (p < 0.0).any():
        raise InvalidInput.must("probabilities", of, "at least 0", float(p.min()))
    far = np.abs(total - 1.0).max(initial=0.0)
    if far > ROUNDED:
        worst = float(total.flat[int(np.abs(total - 1.0).argmax())])
        wanted = "1 in sum for each row (for any other numbers there is scores=)"
        raise InvalidInput.must("probabilities", of, wanted, round(worst, 6))
    return np.asarray(np.log(np.maximum(p / total, 1e-30)))


def own_order(n: int, labels: Labels) -> dict[str, Any]:
    """For records with a number for each of n labels: the order of the names, which logs do not keep.

    Numbers have one order, and a decision knows the order of its eligible labels.
    """
    return {"order": labels.all()} if labels.names is not None and n == len(labels) else {}


# ---------------------------------------------------------------- compiled, alone


@lru_cache(maxsize=64)
def choosers(cls: type[Rule]) -> tuple[Callable[..., tuple[float, float]], Callable[..., None]]:
    """For one row of scores, and for many."""
    from superarm.explore import alone

    return alone.compile_chooser(cls.name, cls.choose), alone.compile_many(cls.name, cls.choose)


# ---------------------------------------------------------------- rules by name


def rules() -> dict[str, type[Rule]]:
    """All rules that are known by now, by name."""
    import superarm.explore  # its own rules, at least

    assert superarm.explore
    found: dict[str, type[Rule]] = {}
    waiting = list(Rule.__subclasses__())
    while waiting:
        cls = waiting.pop()
        found[cls.name] = cls
        waiting += cls.__subclasses__()
    return found


def rule_from(data: dict[str, Any], of: str) -> Rule:
    """The rule that `to_dict` gave as ``data``; ``of`` is whose it is, for messages."""
    known = rules()
    params = {key: value for key, value in data.items() if key != "name"}
    if data.get("name") not in known:
        raise InvalidInput.must("explore", of, f"a rule, one of {', '.join(sorted(known))}", data.get("name"))
    try:
        return known[data["name"]](**params)
    except TypeError as error:
        raise InvalidInput.must("explore", of, "a rule with its own parameters", data) from error


def draw_of(decision: Decision, labels: Sequence[Label] | None = None) -> Draw | None:
    """The distribution that a decision was drawn from, where its rule was recorded.

    Args:
        decision: of a learner or a rule, or from a log.
        labels: all labels; a decision that was stored knows only those it names.

    >>> import superarm as sa
    >>> learner = sa.SetLogit(n_labels=4, n_features=2, set_size=2)
    >>> decision = learner.decide([1.0, 0.0])
    >>> draw = draw_of(decision)
    >>> round(draw.probability(decision.labels), 6) == round(decision.propensity, 6)
    True
    """
    record = decision.rule
    if record is None or record["name"] not in rules():
        return None
    eligible = decision.among if labels is None or decision.eligible is not None else list(labels)
    if eligible is None:
        return None
    return rules()[record["name"]].draw(record, decision.top, eligible, decision.set_size)
