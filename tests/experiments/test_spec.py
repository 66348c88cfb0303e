"""Spec files: what they mean, and what is refused with the line of the mistake."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from lab_kit import blobs, small_spec, write_spec

from superarm.errors import InvalidInput
from superarm.experiments import paper_specs, read_spec

LEARNERS = Path(__file__).parents[1] / "lab_learners.py"


def facts(spec, *names):
    return {tuple(getattr(run, n) for n in names) for run in spec.runs()}


def test_a_product(tmp_path):
    spec = read_spec(small_spec(tmp_path))
    assert facts(spec, "learner", "set_size", "gamma", "seed") == {
        *(("mc-dbf", m, 0.1, s) for m in (2, 4) for s in range(3)),
        *(("banditron", 1, 0.1, s) for s in range(3)),  # its theory knows m = 1 only
        *(("perceptron", m, None, s) for m in (2, 4) for s in range(3)),  # it has no gamma
    }


def test_more_special_wins(tmp_path):
    text = """
rounds = 100
seeds = [3, 5]
set_sizes = [2]
gammas = [0.1, 0.2]
[[data]]
source = "digits"
rounds = 200
[[data]]
source = "synsep"
[[learners]]
use = "mc-dbf"
name = "a"
[[learners]]
use = "mc-dbf:gamma=0.5"
name = "b"
params = { estimate = "set" }
set_sizes = [3]
rounds = 300
"""
    spec = read_spec(write_spec(tmp_path, text))
    runs = spec.runs()
    found = {(c.data, c.learner, c.set_size, c.gamma, c.seed, c.rounds) for c in runs}
    assert found == {
        *(
            (d, "a", 2, g, s, r)
            for d, r in (("digits", 200), ("synsep", 100))
            for g in (0.1, 0.2)
            for s in (3, 5)
        ),
        *((d, "b", 3, None, s, 300) for d in ("digits", "synsep") for s in (3, 5)),
    }
    assert {c.params for c in runs if c.learner == "b"} == {(("estimate", "set"), ("gamma", 0.5))}


def test_quick_other_data_and_other_axes(tmp_path):
    path = small_spec(tmp_path, "[quick]\nrounds = 10\nseeds = 1\n")
    assert facts(read_spec(path), "rounds") == {(2000,)}
    assert facts(read_spec(path, quick=True), "rounds", "seed") == {(10, 0)}
    other = read_spec(path).with_data(["synsep"]).with_axes(rounds=7, seeds=2)
    assert facts(other, "rounds", "seed", "data_digest") == {(7, s, "synsep 1") for s in (0, 1)}
    own = 'data = [{ source = "digits", seeds = 3 }]\nlearners = [{ use = "pa", rounds = 9 }]'
    everywhere = read_spec(write_spec(tmp_path, own)).with_axes(rounds=7, seeds=2)
    assert facts(everywhere, "rounds", "seed") == {(7, 0), (7, 1)}


def test_keys_are_made_of_what_decides_the_result(tmp_path):
    def keys(text):
        head = "rounds = 50\nset_sizes = [2]\n"
        return [c.key for c in read_spec(write_spec(tmp_path, head + text)).runs()]

    base = keys('data = ["digits"]\nlearners = ["mc-dbf"]')
    assert len(base) == 1
    same = [
        'data = ["digits"]\nlearners = [{ use = "mc-dbf", name = "another name" }]',
        'data = ["digits"]\nlearners = ["mc-dbf:estimate=ordered"]',  # its default
        'data = [{ source = "digits", name = "figures" }]\nlearners = ["mc-dbf"]\ngammas = [0.1]',
    ]
    for text in same:
        assert keys(text) == base, text
    others = [
        'data = ["synsep"]\nlearners = ["mc-dbf"]',
        'data = ["digits"]\nlearners = ["mc-dbf:scaling=standard"]',
        'data = [{ source = "digits", first_labels = 5 }]\nlearners = ["mc-dbf"]',
        'data = ["digits"]\nlearners = ["mc-dbf:estimate=set"]',
        'data = ["digits"]\nlearners = ["set-logit"]',
        'data = ["digits"]\nlearners = ["mc-dbf"]\nseeds = [1]',
        'data = ["digits"]\nlearners = ["mc-dbf"]\ngammas = [0.2]',
        'data = ["digits"]\nlearners = [{ use = "mc-dbf", rounds = 51 }]',
        'data = ["digits"]\nlearners = [{ use = "mc-dbf", set_sizes = [3] }]',
    ]
    found = [keys(text)[0] for text in others]
    assert len({*found, *base}) == len(others) + 1


def test_ones_own_learner_and_table_beside_the_spec(tmp_path):
    (tmp_path / "own.py").write_text(LEARNERS.read_text())
    X, y = blobs()
    rows = "".join(f"{a:.3f},{b:.3f},{'xyz'[label]}\n" for (a, b, *_), label in zip(X, y, strict=True))
    (tmp_path / "mine.csv").write_text("a,b,kind\n" + rows)
    text = """
rounds = 50
data = [{ source = "mine.csv", label = "kind" }]
learners = ["own.py:Fine", { use = "own.py:Fine:gamma=0.3", name = "bold" }]
"""
    runs = read_spec(write_spec(tmp_path, text)).runs()
    assert [c.learner for c in runs] == ["own.py:Fine", "bold"]
    assert runs[0].data == "mine"
    before = runs[0].key
    (tmp_path / "own.py").write_text(LEARNERS.read_text() + "\nCHANGED = True\n")
    assert read_spec(write_spec(tmp_path, text)).runs()[0].key != before


DATA = 'data = ["digits"]\n'
PA = f'{DATA}learners = ["pa"]\n'
MCDBF = f'{DATA}learners = ["mc-dbf"]\n'
FIGURE = f"{PA}[[figures]]\n"
ROUNDS_FIGURE = f'{FIGURE}kind = "rounds"\n'
LEARNER = f'{DATA}[[learners]]\nuse = "mc-dbf"\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"rounds = 0\n{PA}", 1, "rounds of .* must be a whole number of at least 1, got 0"),
        (f'{PA}rounds = "many"', 3, "rounds of .* must be a whole number, got 'many'"),
        (f"{PA}\nround = 5", 4, "round of .* must be one of the keys .*; did you mean 'rounds'"),
        (
            f"{PA}[quick]\nround = 5",
            4,
            "round of .*, quick must be one of the keys gammas, rounds, seeds, set_s",
        ),
        (f'{ROUNDS_FIGURE}log = "x"', 5, r"log of .*, figures\[0\] must be a list, got 'x'"),
        (f'{ROUNDS_FIGURE}log = ["z"]', 5, "log of .* must be a list of the axes x, y, got"),
        (
            f'{ROUNDS_FIGURE}finding = "last"',
            5,
            "finding of .* must be one of best-gamma, final, .*, got 'last'",
        ),
        (f'{FIGURE}kind = "pie"', 4, "kind of .* must be one of rounds"),
        (f'{PA}scaling = "none"', 3, "scaling of PA must be one of .*, got 'none'"),
        (f'{PA}reference = "q"', 3, "reference of .* must be the name of a learner"),
        (
            f'{ROUNDS_FIGURE}learners = ["pa", "q"]',
            5,
            r"learners of .*, figures\[0\] must be the name of a learner in it, got 'q'",
        ),
        (f'{DATA}learners = ["mc-bdf"]', 2, "got 'mc-bdf'; did you mean 'mc-dbf'"),
        (f'{LEARNER}[[learners]]\nuse = "x"', 5, "must be one of .*perceptron"),
        (f"{LEARNER}params = {{ gama = 1 }}", 4, "gama of MCDBF must be one of its"),
        (
            f"{LEARNER}params = {{ seed = 1 }}",
            4,
            "seed of MCDBF must be left out of its parameters: .* seeds",
        ),
        (f'{DATA}learners = ["set-logit:seed=1"]', 2, "seed of SetLogit must be left out .*, got 1"),
        (f'{LEARNER}params = {{ gate = "no" }}', 3, "gate of MCDBF must be true or false, got 'no'"),
        (
            f'{FIGURE}kind = "bound"\none_chart = true',
            5,
            "one_chart of .* must be left out with kind 'bound'",
        ),
        (f"{LEARNER}set_sizes = [11]", 4, "must be below n_labels = 10, got 11"),
        (f"{MCDBF}gammas = [0.1, 1.5]", 3, r"gammas\[1\] of .* must be a number of at most 1, got 1.5"),
        (f'{MCDBF}gammas = "worst"', 3, "gammas of .* or 'best'"),
        (f'{MCDBF}gammas = "best"\nbest_from = "x"', 3, "run x first"),
        (f"{MCDBF}seeds = [1, 1]", 3, "seeds of .* must be distinct"),
        (f"{MCDBF}seeds = 0", 3, "seeds of .* must be a whole number of at least 1, got 0"),
        (f"{MCDBF}set_sizes = []", 3, "set_sizes of .* at least one"),
        (f"{MCDBF}set_sizes = [2, 10]", 3, "set_size of MCDBF must be below n_labels = 10"),
        (f'{DATA}learners = ["mc-dbf:estimate=best"]', 2, "estimate of MCDBF must be 'ordered' or"),
        ('data = ["no.csv"]\nlearners = ["pa"]', 1, "data of superarm must be a file or one of"),
        ('data = [{ source = "synsep", first_labels = 3 }]\nlearners = ["pa"]', 1, "first_labels of synsep"),
        ('data = [5]\nlearners = ["pa"]', 1, r"data\[0\] of .* must be a string or a table, got 5"),
        ('data = [{ name = "x" }]\nlearners = ["pa"]', 1, r"data\[0\].source is missing"),
        ('data = ["digits", "digits"]\nlearners = ["pa"]', 1, "the name 'digits' is used twice"),
        ('learners = ["pa"]', 1, "data is missing or empty"),
        (DATA, 1, "learners is missing or empty"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, text, line, message):
    path = write_spec(tmp_path, text)
    with pytest.raises(InvalidInput, match=message) as error:
        read_spec(path).runs()
    assert f"line {line}:" in str(error.value)


def test_files_that_are_no_specs(tmp_path):
    with pytest.raises(InvalidInput, match="no such file: "):
        read_spec(tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match="line 1"):
        read_spec(write_spec(tmp_path, "rounds = = 5"))


def test_the_shipped_specs_are_whole():
    specs = paper_specs()
    names = product(("synsep", "synnonsep", "digits"), ("SOBA", "MC-DBF"))
    best = {(data, learner, m): 0.1 for data, learner in names for m in range(1, 10)}
    assert list(specs) == ["fig2", "fig3", "fig4", "fig5", "fig6", "ours", "bound", "dilution"]
    for name, spec in specs.items():
        assert spec.figures, name
        assert spec.runs(best), name
    figure3 = specs["fig3"].runs(best)
    # the paper's million rounds; five of its ten runs, so that all figures take ten minutes (--seeds 10 has the others)
    assert {c.rounds for c in figure3} == {1_000_000}
    assert {c.seed for c in figure3} == set(range(5))


def test_a_scaling_for_all_learners_that_set_none(tmp_path):
    text = """
rounds = 10
scaling = "standard"
data = ["digits"]
learners = ["mc-dbf", { use = "mc-dbf:scaling=unit", name = "unit" }]
"""
    runs = read_spec(write_spec(tmp_path, text)).runs()
    assert [dict(run.params)["scaling"] for run in runs] == ["standard", "unit"]
    plain = read_spec(write_spec(tmp_path, text.replace('scaling = "standard"', ""))).runs()
    assert plain[0].key != runs[0].key
    assert plain[1].key == runs[1].key
