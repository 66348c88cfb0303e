"""The examples run to their end and say what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SUPERARM_SHARED_DATA", ROOT.parent / "shared" / "data"))


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    call = [sys.executable, str(ROOT / "examples" / name), *arguments]
    return subprocess.run(call, env=env, capture_output=True, text=True, timeout=300, check=False)


def told(name: str, *arguments: str) -> str:
    done = run(name, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, text)]


@pytest.mark.slow
def test_an_ad_slate_learns_though_most_people_click_nothing():
    rates = numbers(r"(0\.\d{3})", told("ad_slate.py"))
    random, without, with_nothing, best = rates
    assert random < without < with_nothing < best


@pytest.mark.slow
def test_triage_learns_from_late_answers():
    text = told("triage.py")
    shares = numbers(r"for (\d+)% of", text)
    assert shares[-1] > 80 > 60 > shares[0]
    assert "decisions are still open" in text


@pytest.mark.slow
def test_a_backend_for_label_studio_learns_from_rejects():
    first, last = numbers(r"(\d+)% in", told("label_studio_backend.py", "--try"))
    assert first < 75 < 85 < last


@pytest.mark.slow
def test_an_old_log_becomes_a_model_and_an_answer():
    text = told("old_log.py")
    low, high = (float(found) for found in re.search(r"model: \S+ \[(\S+), (\S+)\]", text).groups())
    truth = numbers(r"the model hits (0\.\d+)", text)[0]
    assert low - (high - low) / 2 < truth < high + (high - low) / 2


@pytest.mark.slow
def test_news_are_routed():
    if not (DATA / "news20.npz").exists():
        pytest.skip("20 newsgroups (../shared/data/news20.npz) is not here")
    text = told("news_routing.py", str(DATA / "news20.npz"))
    first = numbers(r"first (\d+\.\d)%", text)
    among = numbers(r"among three (\d+\.\d)%", text)
    assert first[-1] > 65
    assert among[-1] > first[-1]


def test_news_says_how_to_make_the_data():
    done = run("news_routing.py", "nowhere.npz")
    assert done.returncode == 1
    assert "says how to make it" in done.stderr


@pytest.mark.slow
def test_a_network_that_never_sees_a_label():
    """At a glance: far better than guessing from bits, better still with labels."""
    pytest.importorskip("jax", reason="JAX is not installed: pip install 'superarm[features]'")
    if not (DATA / "mnist.npz").exists():
        pytest.skip("MNIST (../shared/data/mnist.npz) is not here")
    text = told("cnn_from_bits.py", str(DATA / "mnist.npz"), "--rows", "6000", "--passes", "2")
    bits, labels, _, learner = numbers(r"\d (?:bits|labels)[^.]*(0\.\d{4})", text)
    assert labels < bits < 0.3
    assert learner < 0.3
