"""A rule in a user's own file: explore=file.py:Class, on the command line, in specs and in a service."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab_kit import results, small_data, write_spec

import superarm as sa
from superarm.errors import InvalidInput
from superarm.experiments import Store, read_spec, run
from superarm.explore import PlainRule, rules
from superarm.journal.create import JournalOptions, new_journal
from superarm.logs import Writer

OWN = """
import numpy as np
from superarm.explore import Choice, Mixture, PlainRule

print("executed")


class Fewer(PlainRule):
    name = "fewer"
    sizes_vary = True

    def __init__(self, *, share=0.5, other=1, **common):
        super().__init__(**common)
        self.share, self.other = share, other

    def choose(self, context):
        best = np.argsort(-context.scores, kind="stable")[: context.set_size]
        if context.uniform(0) >= self.share:
            return Choice(best, 1.0 - self.share)
        return Choice(best[:1], self.share)

    @classmethod
    def distribution_from(cls, record, top, eligible, m):
        return Mixture(eligible, m, [(top, 1.0 - record["share"]), (top[:1], record["share"])])
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(OWN)
    return f"{tmp_path / 'own.py'}:Fewer"


def command(*words: Any) -> subprocess.CompletedProcess[str]:
    words = tuple(str(word) for word in words)
    return subprocess.run([sys.executable, "-m", "superarm", *words], capture_output=True, text=True)


def test_a_learner_gets_the_rule_with_its_parameters(own: str) -> None:
    learner = sa.make(
        f"set-logit:explore={own}:share=0.25:other=3,curves=0", n_labels=6, n_features=2, set_size=3
    )
    assert isinstance(learner.rule, PlainRule)
    assert rules()["fewer"].__name__ == "Fewer"
    assert learner.params["explore"] == {"name": "fewer", "share": 0.25, "other": 3}
    sizes = {len(learner.decide([1.0, float(t)]).labels) for t in range(50)}
    assert sizes == {1, 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("Fewer", "None"), "rule of .*own.py must be the name of a Rule class in it, got 'None'"),
        (("Fewer", "np"), "the name of a Rule class in it"),
        (("Fewer", "Fewer:shear=0.1"), "explore of superarm must be a rule with its own parameters"),
        (("own.py", "none.py"), "no such file"),
    ],
)
def test_what_is_no_rule_is_refused(own: str, change: tuple[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sa.make(f"set-logit:explore={own.replace(*change)}", n_labels=6, n_features=2, set_size=3)


def test_in_simulate(own: str) -> None:
    spec = f"set-logit:explore={own}:share=0.3"
    done = command(
        "simulate", "--data", "digits", "--learner", spec, "--set-size", 3, "--rounds", 300, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.removeprefix("executed"))["learner"] == spec


def test_in_a_spec_beside_its_file(own: str, tmp_path: Path) -> None:
    small_data(tmp_path)
    text = """
rounds = 200
set_sizes = [2]
data = ["mine.npz"]
learners = [
    { use = "set-logit:explore=own.py:Fewer", name = "inline" },
    { use = "set-logit", name = "apart", params = { explore = "own.py:Fewer:share=0.9" } },
]
"""
    spec = read_spec(write_spec(tmp_path, text))
    summary = run(spec, Store(tmp_path / "s"), jobs=2)
    assert (summary.executed, summary.failures) == (2, ())
    assert len(results(Store(tmp_path / "s"))) == 2
    before = {one.key for one in spec.runs()}
    (tmp_path / "own.py").write_text(OWN + "\nCHANGED = True\n")
    assert not before & {one.key for one in read_spec(write_spec(tmp_path, text)).runs()}


def test_in_a_service_only_code_that_is_named_is_run(own: str, tmp_path: Path) -> None:
    learner = f"set-logit:explore={own}"
    service = sa.service.Service.open(
        tmp_path / "e.db", labels=list("abcd"), n_features=2, set_size=2, learner=learner
    )
    service.close()
    plain = command("verify", tmp_path / "e.db")
    assert plain.returncode == 2
    assert "code is only run if you name its file" in plain.stderr
    assert "executed" not in plain.stdout
    assert command("verify", tmp_path / "e.db", "--learner", learner).returncode == 0


def test_a_model_with_the_rule_can_be_served(own: str, tmp_path: Path) -> None:
    learner = f"set-logit:explore={own}"
    sa.make(learner, labels=list("abcd"), n_features=2, set_size=2).save(tmp_path / "m.npz")
    meta, _ = new_journal(JournalOptions(learner=learner), tmp_path / "m.npz")
    assert meta["learner"] == learner


def test_evaluate_asks_what_the_rule_would_have_shown(own: str, tmp_path: Path) -> None:
    learner = sa.SetLogit(n_labels=6, n_features=2, set_size=3, uniform=1.0, seed=0)
    rows = np.random.default_rng(0).standard_normal((400, 2))
    with Writer(tmp_path / "log.jsonl") as log:
        for x in rows:
            log.add(learner.decide(x), hit=bool(x[0] > 0))
    learner.save(tmp_path / "model.npz")
    options = ("--model", tmp_path / "model.npz", "--rule", f"{own}:share=0.25,other=3", "--set-size", 3)
    done = command("evaluate", tmp_path / "log.jsonl", *options, "--json")
    result = json.loads(done.stdout.removeprefix("executed\n"))["results"][0]
    assert result["rule"] == "Fewer(share=0.25, other=3)"
    assert result["mean_size"] == pytest.approx(0.75 * 3 + 0.25 * 1)

    done = command("evaluate", tmp_path / "log.jsonl", *options[:3], f"{own}:colour=3")
    assert "--rule of evaluate must be a rule with its own parameters" in done.stderr
    done = command("evaluate", tmp_path / "log.jsonl", *options[:3], own.replace("Fewer", "More"))
    assert "must be the name of a Rule class in it" in done.stderr
