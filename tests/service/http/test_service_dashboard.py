"""The dashboard in a real browser, before a real service under simulated traffic."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from service_kit import D

browser_module = pytest.importorskip("service_browser", reason="websockets (extra dev) is not installed")

from superarm.http.listener import Listener  # noqa: E402
from superarm.service.client.traffic import UserBehaviour, simulate_users  # noqa: E402
from superarm.streams import Arrays  # noqa: E402

pytestmark = pytest.mark.skipif(
    browser_module.CHROMIUM is None,
    reason="no chromium here to open the dashboard with (apt-get install chromium)",
)

EVIL = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'
NAMES = ["news", "sport", "weather", "culture", "science", EVIL]


@pytest.fixture
def browser(tmp_path):
    made = browser_module.Browser(tmp_path / "profile")
    yield made
    made.close()


def open_dashboard(browser, web, width: int) -> None:
    browser.look(width=width, dark=False)
    browser.open(web.url + "/")
    browser.wait("document.getElementById('state').className == 'live'")


def users() -> Arrays:
    random = np.random.default_rng(0)
    y = random.integers(0, 6, 2000)
    X = np.eye(6)[y] @ random.normal(size=(6, D)) + 0.3 * random.normal(size=(2000, D))
    return Arrays(X, np.array(NAMES)[y], labels=NAMES)


@pytest.mark.slow
def test_the_dashboard_lives_and_escapes(live, open_service, browser, tmp_path):
    web = live(open_service(labels=NAMES, shadows=["set-logit:explore=show", "set-logit:explore=0.1"]))
    open_dashboard(browser, web, width=1280)
    assert "nothing yet" in browser.eval("document.body.innerText")
    simulate_users(web.url, users(), 2000, behaviour=UserBehaviour(users=4, mean_delay=0.05))
    decisions = "document.querySelectorAll('.tile .number')[1].textContent"
    browser.wait(f"{decisions} == '2,000'")  # without reloading
    stats = web.get("/v1/stats")[1]
    text = browser.eval("document.body.innerText")
    for name in NAMES:
        assert name in text  # the evil one too, as text
    assert browser.eval("window.broken") is None
    assert browser.eval("document.querySelectorAll('img').length") == 0
    assert browser.eval("document.querySelectorAll('#labels tr').length") == 6
    assert browser.eval("document.querySelectorAll('#recent tr').length") == 12
    assert browser.eval("document.querySelectorAll('#hit-chart path').length") == 2  # the line and its band
    browser.wait(f"document.querySelectorAll('.tile .number')[3].textContent == '{stats['pending']}'")
    assert browser.eval("document.querySelectorAll('#shadows tr').length") == 3  # the model, two shadows
    assert "set-logit:explore=0.1" in text
    estimated = [one for one in web.get("/v1/stats")[1]["shadows"] if one["rate"] is not None]
    assert len(estimated) >= 2  # rarely, the sets of one were shown too seldom
    browser.wait(f"document.querySelectorAll('#shadows .range').length == {len(estimated)}")
    assert browser.eval("document.getElementById('trouble').hidden")
    shots = Path(os.environ.get("SUPERARM_SHOTS", tmp_path))
    for width in (1280, 400):
        for dark in (False, True):
            browser.look(width=width, dark=dark)
            time.sleep(0.3)
            assert browser.eval("document.documentElement.scrollWidth <= innerWidth"), (
                f"it overflows at {width}"
            )
            paper = browser.eval("getComputedStyle(document.body).backgroundColor")
            assert (max(map(int, paper[4:-1].split(","))) < 60) == dark
            browser.screenshot(shots / f"dashboard-{width}-{'dark' if dark else 'light'}.png")
    assert browser.complaints() == []
    simulate_users(web.url, users(), 50, behaviour=UserBehaviour(users=2, mean_delay=0.0, seed=1))
    browser.wait(f"{decisions} == '2,050'")


def test_it_says_when_the_service_is_gone_and_comes_back_by_itself(live, open_service, browser):
    web = live(open_service())
    open_dashboard(browser, web, width=1280)
    web.stop()
    browser.wait("document.getElementById('state').textContent.startsWith('not reachable')")
    live(open_service(), listener=Listener(port=web.port))
    browser.wait("document.getElementById('state').className == 'live'")


def test_it_asks_for_the_token(live, browser):
    web = live(token="a-very-secret-token")
    browser.look(width=400, dark=False)
    browser.open(web.url + "/")
    browser.wait("document.getElementById('login').hidden === false")
    browser.eval("document.getElementById('token').value = 'a-very-secret-token'")
    browser.eval("document.getElementById('login').requestSubmit()")
    browser.wait("document.getElementById('state').className == 'live'")
    assert browser.eval("document.getElementById('login').hidden")


def test_trouble_comes_first(live, open_service, browser, tmp_path):
    service = open_service()
    web = live(service)
    open_dashboard(browser, web, width=400)
    service.follower.broken_snapshots = (4711,)
    browser.wait("document.getElementById('trouble').hidden === false")
    assert "4711" in browser.eval("document.getElementById('trouble').innerText")
    assert browser.eval("document.getElementById('state').textContent") == "trouble"
    first = "[...document.querySelectorAll('main > *')].find(one => !one.hidden).id"
    assert browser.eval(first) == "trouble"
    assert browser.eval("document.documentElement.scrollWidth <= innerWidth")
    browser.screenshot(Path(os.environ.get("SUPERARM_SHOTS", tmp_path)) / "trouble-400-light.png")
    service.follower.broken_snapshots = ()
    browser.wait("document.getElementById('trouble').hidden")
    assert browser.complaints() == []


def test_the_documentation_needs_nothing_from_elsewhere(live, browser, tmp_path):
    web = live()
    for width in (1280, 400):
        browser.look(width=width, dark=False)
        browser.open(web.url + "/docs")
        assert "/v1/decisions/{id}/outcome" in browser.eval("document.body.innerText")
        assert browser.eval("document.documentElement.scrollWidth <= innerWidth")
        browser.screenshot(Path(os.environ.get("SUPERARM_SHOTS", tmp_path)) / f"docs-{width}.png")
    assert browser.complaints() == []


@pytest.mark.slow
def test_the_dashboard_of_many_processes(shared, live, browser, tmp_path):
    services = [shared(labels=NAMES), shared(), shared()]
    web = live(services[0])
    simulate_users(web.url, users(), 300, behaviour=UserBehaviour(users=4, mean_delay=0.05))
    browser.look(width=1280, dark=False)
    browser.open(web.url + "/")
    browser.wait("document.querySelectorAll('#processes tr').length == 3")
    browser.wait("document.querySelectorAll('.tile .number')[1].textContent == '300'")
    text = browser.eval("document.getElementById('processes-card').innerText")
    assert all(service.store.application.split()[2] in text for service in services)
    browser.screenshot(Path(os.environ.get("SUPERARM_SHOTS", tmp_path)) / "dashboard-processes.png")
    assert b"\nsuperarm_processes 3.0\n" in web.get("/metrics")[1]
