"""Whatever the OpenAPI document allows, and much that it does not: no answer is a 5xx or undocumented."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from service_kit import D

import superarm
from superarm.service import messages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ALMOST = st.fixed_dictionaries(
    {"features": st.lists(st.floats(width=32), min_size=D, max_size=D) | JSON},
    optional={"id": st.text() | JSON, "eligible": JSON, "set_size": JSON, "context": JSON},
)


@pytest.mark.slow
def test_schemathesis_finds_nothing(live, open_service, tmp_path):
    pytest.importorskip("schemathesis", reason="schemathesis (extra dev) is not installed")
    web = live(open_service(n_features=None))
    web.post("/v1/decisions", {"features": {"age": 41}})  # most of what it tries has names
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{web.url}/openapi.json", "--url", web.url]
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    command += ["--checks", checks, "--max-examples", "40", "--seed", "1", "--no-color", "--mode", "all"]
    command += ["--phases", "examples,coverage,fuzzing"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert web.get("/health")[0] == 200
    assert web.get("/v1/stats")[1]["decisions"] > 20, "hardly anything valid was tried"


def test_anything_at_all_is_answered_with_2xx_or_4xx(live):
    web = live()

    @settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        body=ALMOST | JSON | st.binary(max_size=100),
        path=st.sampled_from(["decisions", "decisions/a/outcome", "batch/decisions", "batch/outcomes"]),
    )
    def tried(body, path):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer = web.post(f"/v1/{path}", data)
        assert status == 200 or 400 <= status < 500, answer
        if status != 200:
            assert answer["error"]["field"] is not None
            assert answer["error"]["status"] == status

    tried()


def test_an_unfinished_change_has_the_body_of_a_change(live):
    web = live()
    responses = web.get("/openapi.json")[1]["paths"]["/v1/changes"]["post"]["responses"]
    schema_of = {
        status: response["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for status, response in responses.items()
    }
    assert schema_of.pop("200") == schema_of.pop("202") == "ChangeResponse"
    assert set(schema_of.values()) == {"Error"}


def test_bodies_have_names_of_their_own_in_code_and_document(live):
    """A body that has the name of another class is taken for it."""
    names = set(
        re.findall(
            r"^(?:class )?([A-Z][a-z]\w+)(?:\(| = )", Path(messages.__file__).read_text(), re.MULTILINE
        )
    )
    assert {"DecisionRequestBody", "Features"} <= names
    package = Path(superarm.__file__).parent
    others = (path.read_text() for path in package.rglob("*.py") if path != Path(messages.__file__))
    classes = {name for text in others for name in re.findall(r"^class (\w+)", text, re.MULTILINE)}
    assert names & classes == set()
    schemas = live().get("/openapi.json")[1]["components"]["schemas"]
    bodies = {"DecisionRequestBody", "OutcomeRequestBody", "DecisionRecordBody", "PendingBody"}
    assert bodies | {"OutcomeRequest", "SnapshotItem", "ErrorDetail", "ChangeResponse"} <= set(schemas)


def test_an_outcome_that_was_not_projected_yet_is_a_valid_body():
    """GET of a decision gives ``learnt: null`` then; the document used to say that it is true or false."""
    body = {"hit": True, "label": None, "time": 1.0, "learnt": None, "late": False, "timeout": False}
    assert msgspec.convert(body, messages.Outcome).learnt is None
