"""The game behind `superarm play`: what each learner is told, and what its errors are measured on."""

from __future__ import annotations

import numpy as np
import pytest

import superarm as sa
from superarm.errors import FeedbackError
from superarm.play.game import GAMMA, Game


def test_nobody_learns_from_the_pictures_that_measure():
    game = Game(seed=3)
    seen = []
    for _ in range(2 * len(game.training)):
        seen.append(game.picture)
        game._learn(True, by_person=False)
    assert len(seen) == 2 * len(game.training)
    assert not set(seen) & set(game.test.tolist())
    assert sorted(seen) == sorted(2 * game.training.tolist())
    assert seen[: len(game.training)] != seen[len(game.training) :]  # in another order
    assert set(seen) | set(game.test.tolist()) == set(range(len(game.y)))


def test_bits_alone_teach_the_learners_of_bits():
    """Their weights are those of the fused loop, which gives them bits and nothing else."""
    game = Game(seed=1)
    visit = []
    for _ in range(300):
        visit.append(game.picture)
        game.answer_by_computer(1)
    common = {"n_labels": 10, "n_features": 64, "set_size": 3, "seed": 1}
    for name, twin in {
        "set-logit": sa.SetLogit(**common),
        "mc-dbf": sa.MCDBF(**common, gamma=GAMMA),
        "labels": sa.AveragedSoftmax(**common),  # SetLogit with labels is this
    }.items():
        twin.run(game.X, game.y, visit)
        X = game.X[game.test]
        np.testing.assert_array_equal(twin.predict(X), game.learners[name].predict(X))
    errors = [np.mean(one.predict(X) != game.y[game.test]) for one in game.learners.values()]
    assert game.curve[-1] == (300, *errors)
    assert errors[2] < errors[0] < 0.3


def test_an_answer_against_the_data_reaches_setlogit_alone():
    games = Game(seed=5), Game(seed=5)
    right = games[0].label in games[0].shown
    for game, hit in zip(games, (right, not right), strict=True):
        game.answer(0, hit)
        assert game.last_answer is not None
        assert (game.last_answer.hit, game.answers, game.by_person) == (hit, 1, 1)
    for name in ("mc-dbf", "labels"):
        a, b = (game.learners[name].scores(game.X[:50]) for game in games)
        np.testing.assert_array_equal(a, b)
    a, b = (game.learners["set-logit"].scores(game.X[:50]) for game in games)
    assert not np.array_equal(a, b)


def test_each_set_is_answered_once():
    game = Game()
    game.answer(0, True)
    with pytest.raises(FeedbackError, match="question of play must be 1, the one on show, got 0"):
        game.answer(0, True)
    assert game.answers == 1


def test_a_yes_makes_the_shown_digits_more_probable():
    game = Game(seed=2)
    game.answer_by_computer(5)
    shown, x, before = game.shown, game.x, sum(game.probabilities()[label] for label in game.shown)
    assert sum(game.probabilities()) == pytest.approx(1.0)
    game.answer(5, True)
    game.x = x
    assert sum(game.probabilities()[label] for label in shown) > before
