"""Changes by an operator while a service runs: each is an event, which takes effect when it is projected."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from superarm.journal.errors import JournalDown, Refused

if TYPE_CHECKING:
    from superarm.service.service import Service

__all__ = ["change"]

WAIT_SECONDS = 20.0  # for the process that learns


async def change(service: Service, change: dict[str, Any]) -> dict[str, Any]:
    """Change something while it runs; each change is an event of the journal."""
    what, erased, finished = change["what"], 0, True
    if what == "erase":
        ids, before = change.get("ids"), change.get("before")
        if (ids is None) == (before is None):
            raise Refused.must("ids", "change", "given, or before in its place, and not both", ids)
        seq = await service.submit(service.erase_now, (ids, before))
        await _projected(service, seq)
        erased, finished = service.model.erased(seq)
    else:
        given = {name: value for name, value in change.items() if value is not None}
        if what == "set_explore":
            params = {name: given[name] for name in ("explore", "uniform") if name in given}
            given = {"what": what, "params": params}
        seq = await service.submit(service.change_now, given)
        await _projected(service, seq)
        if seq in service.model.refused:
            reason, field = service.model.refused[seq]
            raise Refused(str(reason), field=field)
    serving = service.model.model()
    labels = list(serving.learner.labels or ())
    result = {"what": what, "seq": seq or service.model.seq, "labels": labels}
    result |= {"disabled": sorted(serving.disabled), "frozen": serving.frozen}
    return result | {"erased": erased, "finished": finished}


async def _projected(service: Service, seq: int | None) -> None:
    """Wait until an event is projected, here or by the process that learns."""
    until = time.monotonic() + WAIT_SECONDS
    while seq is not None and service.model.seq < seq:
        if time.monotonic() > until:
            raise JournalDown(
                "no process learns at the moment: the change is in the journal, and takes effect when one does"
            )
        await asyncio.sleep(0.02)
        await service.read(lambda service: service.model.refresh())
