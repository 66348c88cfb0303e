"""State: what all answers together say. A pure function of the events, in their order.

For every row: its answers, the beliefs that follow, the label they speak for, and the doubt in it, 1 - b. A row whose
label was found teaches the model, once, with that label (again if it changes), and with it REPLAYS rows of before,
drawn at random: the model learns as from several passes, without waiting for one.

Each row also teaches one of two smaller models. What the other one says of it later, having learnt more than the model
that was asked first, becomes the prior of its beliefs: so wrong clicks of the beginning are found, without a question.
"""

from __future__ import annotations

import numpy as np

from superarm._types import Array
from superarm.data.rows import Rows
from superarm.decisions import Decision
from superarm.label.belief import Answer, WrongAnswers, possible, posterior
from superarm.label.calibration import fit, logit
from superarm.label.names import FILE
from superarm.learners import SetLogit
from superarm.losses import softmax
from superarm.native.randomness import uniform_number

REPLAYS = 2  # rows of before that teach again with each new one
# a row is not looked at again if there were no more doubt about it than this, had a careless person answered
KEEP_PRIOR, CARELESS = 0.005, 0.05
REFIT_AFTER = 25, 250  # after a quarter more answers, within these limits, doubtful rows are looked at again
SLIP = 0.1  # a chance of one from which denied labels are shown again
MOST_CHECKS = 8_000
NO_LABEL = -1


class State:
    """Labels, doubts and the model, after some events.

    Args:
        rows: the features of all (distinct) rows.
        labels: the names of the labels.
        target: the share of labels that shall be right: below 1 a row may be left before its label is certain.
        yes_no: whether answers are only yes or no.
        seed: for the rows that teach again.

    Attributes:
        names: of the labels; one that was merged or retired keeps its number, but another may take its name.
        live: whether a label may still be given.
        label: of each row, as a number; -1 if nobody was asked, or no label fits.
        doubt: of each row that was asked about, the chance that its label is wrong.
        suspicion: what the doubt would be, had a careless person answered.
        done: whether the row needs no further question: its label was named, all others were excluded, it is sure
            enough for the target, or none fits.
        clicks: answers about each row.
        done_order: the rows in the order in which they were done first.
        checks: of first questions: row, logit of the model's doubt, whether it was an audit.
        check_error: of each row, the chance that the model's label was wrong when it was first asked about.
    """

    def __init__(self, rows: Rows, labels: list[str], *, target: float, yes_no: bool, seed: int) -> None:
        self.rows, self.names, self.target, self.yes_no, self.seed = rows, list(labels), target, yes_no, seed
        n = len(rows)
        self.numbers = {name: number for number, name in enumerate(labels)}  # also by names of before
        self.live = np.ones(len(labels), bool)
        self.merged_into = list(range(len(labels)))  # where a merged label went
        self.learner = self._new_learner()
        # each row teaches one of two more: what the other says of it does not come from the row's own answers
        self._halves = self._new_learner(), self._new_learner()
        self._half = np.random.default_rng((seed, 4)).integers(0, 2, n)
        self.label = np.full(n, NO_LABEL, np.int32)
        self.doubt = np.ones(n)
        self.suspicion = np.zeros(n)
        self.done = np.zeros(n, bool)
        self.clicks = np.zeros(n, np.int32)
        self.skips = np.zeros(n, np.int32)
        self.done_order: list[int] = []
        self.answers: dict[int, list[Answer]] = {}
        self.left_out: set[str] = set()
        self.wrong_answers = WrongAnswers(n)
        self.audits = 0
        self.checks: list[tuple[int, float, bool]] = []
        self.check_error = np.zeros(n)
        self._prior: dict[int, Array] = {}
        self._prior_lessons: dict[int, int] = {}  # how many the model had learnt that gave the prior
        self._model_label: dict[int, int] = {}
        self._taught: list[int] = []
        self._taught_as = np.full(n, NO_LABEL, np.int32)
        self._ordered = np.zeros(n, bool)
        self.version = 0  # a counter of what has happened: whoever caches what follows from it compares it
        self._until_refit = REFIT_AFTER[0]
        self._lessons, self._half_lessons = 0, [0, 0]
        self._inverse_temperature = 1.0  # the model's probabilities to this power are right

    def _new_learner(self) -> SetLogit:
        return SetLogit(n_labels=len(self.names), n_features=self.rows.layout.n_features, seed=self.seed)

    # ------------------------------------------------------------ beliefs

    def probabilities(self, rows: Array) -> Array:
        """The model's, for some rows and every label that is live."""
        return self._for_live_labels(softmax(self.learner.scores(self.rows.take(rows))))

    def _for_live_labels(self, p: Array) -> Array:
        """Probabilities for labels of some time, for those of today: some were added, merged or retired since."""
        k = len(self.names)
        if p.shape[1] < k:
            p = np.concatenate([p, np.full((len(p), k - p.shape[1]), 1.0 / k)], axis=1)
        elif self.live.all():
            return p
        p = np.maximum(p, 1e-12)
        for number, into in enumerate(self.merged_into):
            if into != number:
                p[:, into] += p[:, number]
        p *= self.live
        p /= p.sum(axis=1, keepdims=True)
        return p

    def belief(self, row: int) -> Array:
        """About one row: the model's probabilities, times what was answered."""
        answers = self.valid_answers(row)
        return posterior(self._tempered(self._prior_of(row)), answers, self._rates(answers), self.yes_no)

    def left(self, row: int, belief: Array) -> Array:
        """Of each label, whether it may be shown: none that was denied, unless all were, or that may be a slip."""
        left = possible(self.valid_answers(row), self.live)
        return self.live if self.done[row] or belief[left].sum() < 1.0 - SLIP else left

    def _prior_of(self, row: int) -> Array:
        """Probabilities of a model that has not learnt from the row."""
        prior = self._prior.get(row)
        if prior is None:
            taught = self._taught_as[row] != NO_LABEL
            learner = self._halves[1 - self._half[row]] if taught else self.learner
            prior = self._for_live_labels(softmax(learner.scores(self.rows.take(np.array([row])))))[0]
        return prior

    def _rates(self, answers: list[Answer]) -> dict[str, float]:
        """How often those who answered are wrong."""
        return {answer.by: self.wrong_answers.rate(answer.by) for answer in answers}

    def _tempered(self, prior: Array) -> Array:
        """A model's probabilities, as sure as they may be, for today's labels."""
        p = self._for_live_labels(prior[None])[0] ** self._inverse_temperature
        tempered: Array = p / p.sum()
        return tempered

    def live_names(self) -> list[str]:
        """Of the labels that may be given."""
        return [name for name, live in zip(self.names, self.live, strict=True) if live]

    def people(self) -> set[str]:
        """Whoever has answered, with or without a name."""
        return {answer.by for answers in self.answers.values() for answer in answers} - {FILE}

    def valid_answers(self, row: int) -> list[Answer]:
        """The answers about a row that count, in today's labels."""
        answers = []
        for answer in self.answers.get(row, ()):
            if answer.hit is None or answer.by in self.left_out:
                continue
            if not self.live.all():
                into = self.merged_into
                label = answer.label if answer.label < 0 else into[answer.label]
                # a "no" about a label that was merged says nothing about the other
                same = [number for number in answer.shown if answer.hit or into[number] == number]
                shown = tuple(dict.fromkeys(into[number] for number in same if self.live[into[number]]))
                if not shown if label < 0 else not self.live[label]:
                    continue  # it speaks of labels that are gone
                answer = answer._replace(label=label, shown=shown)
            answers.append(answer)
        return answers

    # ------------------------------------------------------------ what happens

    def add(self, row: int, answer: Answer) -> None:
        """Somebody has answered."""
        if answer.hit is None:
            self.version += 1
            self.skips[row] += 1
            self.answers.setdefault(row, []).append(answer)
            return
        if not answer.final:
            self.clicks[row] += 1
            self.audits += answer.audit
            self.wrong_answers.count(answer.by, 1)
            if row not in self._model_label:
                p = self.probabilities(np.array([row]))[0]
                self._prior[row], self._model_label[row] = p, int(p.argmax())
                self._prior_lessons[row] = self._lessons
                self.checks.append((row, float(logit(1.0 - p.max())), answer.audit))
        self.answers.setdefault(row, []).append(answer)
        self._conclude(row)
        self._until_refit -= 1
        if self._until_refit <= 0:
            self._refit()
            self._until_refit = int(np.clip(self.clicks.sum() // 4, *REFIT_AFTER))

    def take_back(self, row: int, seq: int) -> None:
        """An answer does not hold any more."""
        gone = [answer for answer in self.answers[row] if answer.seq == seq]
        self.answers[row] = [answer for answer in self.answers[row] if answer.seq != seq]
        for answer in gone:
            if answer.hit is None:
                self.skips[row] -= 1
            elif not answer.final:
                self.wrong_answers.count(answer.by, -1)
        self._conclude(row)

    def reconsider(self, rows: list[int] | None = None) -> None:
        """Labels or people have changed: conclude again about these rows, or all that were asked about."""
        for row in list(self.answers) if rows is None else rows:
            self._conclude(row)

    def _refit(self) -> None:
        """Look again at how sure the model may be, and with that and what is known of people now, at doubtful rows."""
        checks = self.recent_checks()
        rows, z, _ = zip(*checks, strict=True) if checks else ((), (), ())
        slope = fit(np.array(z), self.check_error[list(rows)])[0][1]
        self._inverse_temperature = float(np.clip(slope, 0.3, 1.0))
        doubtful = np.array([row for row in self._prior if self.done[row]], np.intp)
        self._refresh_priors(doubtful)
        self.wrong_answers.fit()
        self.reconsider(doubtful.tolist())

    def recent_checks(self) -> list[tuple[int, float, bool]]:
        """Those of rows whose label is known by now."""
        return [check for check in self.checks if self.done[check[0]]][-MOST_CHECKS:]

    def _refresh_priors(self, rows: Array) -> None:
        """Take what the other half's model says of rows, where that has learnt more than the one that was asked."""
        for half, learner in enumerate(self._halves):
            old = [self._prior_lessons.get(int(row), 0) < self._half_lessons[half] for row in rows]
            stale = rows[(self._half[rows] != half) & np.array(old, bool)]
            if len(stale):
                p = softmax(learner.scores(self.rows.take(stale)))
                for row, now in zip(stale.tolist(), p, strict=True):
                    self._prior[row], self._prior_lessons[row] = now, self._half_lessons[half]

    def add_label(self, name: str) -> None:
        """A new label, or one that was retired."""
        number = self.numbers.get(name)
        if number is not None and self.names[number] == name and self.merged_into[number] == number:
            self.live[number] = True
            for prior in self._prior.values():
                if number < len(prior) and not prior[number]:  # made meanwhile, without it
                    prior[number] = 1.0 / len(self.names)
            self.reconsider()
            return
        for learner in (self.learner, *self._halves):
            learner.add_labels(1)
        self.names.append(name)
        self.numbers[name] = len(self.names) - 1
        self.merged_into.append(len(self.merged_into))
        self.live = np.append(self.live, True)
        self.reconsider([row for row in self.answers if self.done[row] and self.label[row] == NO_LABEL])

    def rename(self, old: str, new: str) -> None:
        """A label has another name; the old one still means it, until another label takes it."""
        number = self.numbers[new] = self.numbers[old]
        self.names[number] = new

    def retire(self, name: str, into: str | None = None) -> None:
        """A label is gone, or has become another."""
        number = self.numbers[name]
        self.live[number] = False
        if into is not None:
            other = self.numbers[into]
            self.merged_into = [other if where == number else where for where in self.merged_into]
        self.reconsider()

    # ------------------------------------------------------------ conclusions

    def _conclude(self, row: int) -> None:
        self.version += 1
        answers = self.valid_answers(row)
        if not answers:
            self.label[row], self.doubt[row], self.done[row] = NO_LABEL, 1.0, False
            self.wrong_answers.put(row, np.ones(1), [], self.yes_no)
            return
        prior, rates = self._prior_of(row), self._rates(answers)
        tempered = self._tempered(prior)
        belief = posterior(tempered, answers, rates, self.yes_no)
        self.wrong_answers.put(row, tempered, answers, self.yes_no)
        label = int(belief.argmax())
        self.label[row], self.doubt[row] = label, 1.0 - belief[label]
        model_label = self._model_label.get(row)
        if model_label is not None:
            self.check_error[row] = 1.0 - belief[self.merged_into[model_label]]
        if not any(a.hit or a.label >= 0 for a in answers) and not possible(answers, self.live).any():
            label = self.label[row] = NO_LABEL  # none of all the labels fits
            self.doubt[row], self.check_error[row] = 0.0, model_label is not None
            self.wrong_answers.put(row, tempered, [], self.yes_no)  # nobody was wrong
        was, self.done[row] = self.done[row], self._is_done(label, answers, float(self.doubt[row]))
        if not self.done[row]:
            return
        if not was and not self._ordered[row]:
            self._ordered[row] = True
            self.done_order.append(row)
        if label == NO_LABEL:
            return
        if self.doubt[row] < 0.5:
            self._teach(row, label)
        careless = posterior(tempered, answers, dict.fromkeys(rates, CARELESS), self.yes_no)
        self.suspicion[row] = 1.0 - careless[label]
        if self.suspicion[row] > KEEP_PRIOR:
            self._prior[row] = prior
        else:
            self._prior.pop(row, None)

    def _is_done(self, label: int, answers: list[Answer], doubt: float) -> bool:
        """Whether it needs no further question now: it was named, all others are excluded, or it is sure enough."""
        if label == NO_LABEL or any(a.label >= 0 or (a.hit and len(a.shown) == 1) for a in answers):
            return True
        left = possible(answers, self.live)
        return bool(left.sum() == 1 and left[label]) or doubt <= (1.0 - self.target) / 2.0

    def _teach(self, row: int, label: int) -> None:
        if self._taught_as[row] == label:
            return
        if self._taught_as[row] == NO_LABEL:
            self._taught.append(row)
        self._taught_as[row] = label
        self._lesson(row)
        for draw in range(REPLAYS if len(self._taught) > 50 else 0):
            number = uniform_number(self.seed, self._lessons, draw)
            self._lesson(self._taught[int(number * len(self._taught))])

    def _lesson(self, row: int) -> None:
        label = int(self._taught_as[row])
        if self.label[row] == label:  # else it was taken back
            for learner in (self.learner, self._halves[self._half[row]]):
                learner.update(Decision.given(self.rows.row(row), [label]), label=label)
            self._lessons += 1
            self._half_lessons[self._half[row]] += 1
