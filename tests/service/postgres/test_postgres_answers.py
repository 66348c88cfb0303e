"""Answers that are learnt in one call: the same model, totals and notes as one by one. No database needed."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from service_kit import LABELS, D, rows

pytest.importorskip("psycopg", reason="these tests need psycopg: pip install 'superarm[postgres]'")

from orjson import dumps

from superarm.service.core import founding
from superarm.service.core.events import (
    CHANGE,
    DECISION,
    OUTCOME,
    TIMEOUT,
    content_digest,
    decision_body,
    pack_row,
)
from superarm.service.core.journal import Snapshot
from superarm.service.core.postgres import ordered
from superarm.service.core.postgres.moments import decide_at
from superarm.service.core.postgres.ordered import Ordered
from superarm.service.core.postgres.tables import SHIFT, Row, in_order
from superarm.service.core.shadows import make_shadows
from superarm.service.core.snapshots import learner_from, model_bytes

N = 450
ONE = 1 << SHIFT  # the first writer


def made_by(learner):
    """Decisions and answers of all kinds, in three batches, and a change."""
    rng, X, batches, number = np.random.default_rng(5), rows(N), [], ONE
    for part in np.split(np.arange(N), 3):
        events = []
        for i in part.tolist():
            asked = 1 if rng.random() < 0.03 else None
            eligible = LABELS[:4] if rng.random() < 0.03 else None
            decision, before, moved = decide_at(learner, X[i], eligible, asked, i)
            body = decision_body(decision, asked, eligible)
            body |= {"version": 0, "model": 0, "k": len(LABELS), "moment": before, "moved": moved}
            x = pack_row(decision.x)
            if i in (40, N // 2):  # a row that no learner takes, in the midst of others
                x = np.full(D, np.nan, np.float32).tobytes()
            content = content_digest(x, None)
            x = None if i == 50 else x  # erased
            number += 1
            events.append(Row(number, float(i), DECISION, f"d{i}", x, None, dumps(body), content))
            kind, answer = OUTCOME, {"of": number, "hit": bool(rng.random() < 0.5), "label": None}
            how = rng.random()
            if how < 0.04:
                kind, answer = TIMEOUT, {"of": number, "hit": None if how < 0.02 else False}
            elif N // 3 <= i < N - 20:
                answer["label"] = str(rng.choice(eligible or LABELS))
                answer["hit"] = answer["label"] in decision.labels
            number += 1
            events.append(Row(number, i + 0.5, kind, f"d{i}", None, None, dumps(answer), b""))
            if kind == TIMEOUT:  # a late answer
                number += 1
                late = dumps({"of": number - 2, "hit": True, "label": None})
                events.append(Row(number, i + 2.0, OUTCOME, f"d{i}", None, None, late, b""))
        if part[0] == 0:
            number += 1
            events.append(Row(number, 1.0, CHANGE, "", None, None, dumps({"what": "freeze"}), b""))
            number += 1
            events.append(Row(number, 1.0, CHANGE, "", None, None, dumps({"what": "resume"}), b""))
        batches.append(in_order(events))
    return batches


@pytest.mark.parametrize("spec", ["set-logit", "mc-dbf", "softmax"])
@pytest.mark.parametrize("shadows", [(), ("set-logit:forget=0.01",)])
def test_together_is_one_by_one(monkeypatch, spec, shadows):
    asked = {"learner": spec, "labels": LABELS, "n_features": D, "set_size": 2, "seed": 3}
    meta, parts, totals = founding.first(asked, None)
    start = Snapshot(0, meta["made"], parts, totals, {})
    batches = made_by(learner_from(parts["model"]))
    real, together = ordered.learn_together, []

    def counting(learner, places, run):
        together.append(real(learner, places, run))
        return together[-1]

    def learnt():
        model = Ordered(SimpleNamespace(snapshot=None), copy.deepcopy(start), None)
        model.shadows = make_shadows(shadows, model.learner)
        notes = [model.take(batch, [[ONE, batch[-1].number]]) for batch in batches]
        made = {name: shadow.learnt for name, shadow in model.shadows.items()}
        return model_bytes(model.learner), dumps(model.totals()), notes, model.seq, made

    monkeypatch.setattr(ordered, "learn_together", counting)
    found = learnt()
    monkeypatch.setattr(ordered, "learn_together", lambda *_: 0)
    assert learnt() == found
    assert N // 5 < sum(together) < N
    assert len([count for count in together if count]) > 3
    assert found[3] == sum(map(len, batches))
    refused = {note["refused"] for notes in found[2] for note in notes.values() if note.get("refused")}
    assert "its features were erased" in refused
    assert any("must be finite" in why for why in refused)
