"""One process among many on a shared journal, with the face of `core.session.Session`.

Three threads beside the requests: one writes (group.py), one hears of new models and says that this process
is alive, and one stands for the office of learning, and learns if it is elected.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from orjson import dumps, loads

from superarm.errors import SuperarmError
from superarm.service.core.desk import check_seconds
from superarm.service.core.entries import Cache
from superarm.service.core.events import CHANGE
from superarm.service.core.faults import JournalDown, JournalForeign, Refused, UnknownDecision
from superarm.service.core.operating import Operated
from superarm.service.core.postgres import founding
from superarm.service.core.postgres.clock import NOW, DatabaseClock
from superarm.service.core.postgres.connecting import Address, failures, psycopg
from superarm.service.core.postgres.desk import Serving
from superarm.service.core.postgres.electing import Deposed, stand
from superarm.service.core.postgres.learning import Learning, Settings
from superarm.service.core.postgres.reading import PostgresJournal
from superarm.service.core.postgres.rebuilding import newest
from superarm.service.core.postgres.schema import check
from superarm.service.core.postgres.tables import Writer, load_published
from superarm.service.core.postgres.warming import warm_up
from superarm.service.core.postgres.watching import Watching
from superarm.service.core.snapshots import learner_from, model_bytes

__all__ = ["SharedSession"]

log = logging.getLogger("superarm.service")

LEASE = 3.0  # seconds; another process learns after at most this, and a quarter of it
PATIENCE = 5.0  # seconds that a caller waits for the database
RETRY_SECONDS = 0.5
CHANGE_SECONDS = 20.0  # that an operator waits for the process that learns


class SharedSession(Watching, Operated):
    """A process that serves decisions, takes answers, and may be the one that learns. Use `open`."""

    def __init__(
        self,
        address: Address,
        *,
        lease: float = LEASE,
        patience: float = PATIENCE,
        learn: bool = True,
        **settings: Any,
    ) -> None:
        began = time.perf_counter()
        self.settings = Settings(**settings)
        check_seconds(
            lease=lease, patience=patience, timeout=self.settings.timeout, retain=self.settings.retain
        )
        self.address, self.lease, self.patience = address, lease, patience
        self.timeout, self.default = self.settings.timeout, self.settings.default
        self.process = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.journal = PostgresJournal(address)
        self.meta = self.journal.meta()
        with self.journal.reading() as connection:
            self.clock: DatabaseClock = DatabaseClock(connection)
        self.down: JournalDown | None = None
        self.founded = False
        self.writer = self.coming = None
        self.learning: Learning | None = None
        self.learner_error: str | None = None
        self._retry_at = self._looked = 0.0
        self._rounds, self._staged, self._entries, self._no_room_for = iter(()), {}, Cache(), []
        self._stop = threading.Event()
        self._away = False  # the database, for the thread that would learn
        self._commit_began = None
        try:
            self._begin(learn)
        except BaseException:
            self.journal.close()
            raise
        self.restart_seconds = time.perf_counter() - began
        for thread in self._threads:
            thread.start()

    def _begin(self, learn: bool) -> None:
        self.serving = self._rebuilt()
        self.replayed = 0
        self.totals: dict[str, Any] = {}
        self.seq, self.snapshot_seq = 0, 0
        self.processes: list[dict[str, Any]] = []
        self._learner_beat = None
        self._follow()
        self.check_default()
        self.warm_up()
        self.refresh()
        self.open_writer()
        jobs = [self._hear] + [self._stand] * learn
        self._threads = [
            threading.Thread(target=job, name=job.__name__.strip("_"), daemon=True) for job in jobs
        ]

    @classmethod
    def open(
        cls,
        url: str,
        *,
        learner: str | None = None,
        labels: Sequence[str] | None = None,
        n_features: int | None = None,
        set_size: int | None = None,
        seed: int | None = None,
        model: str | Path | None = None,
        create: bool = True,
        **settings: Any,
    ) -> SharedSession:
        """The session of this process on a shared journal; a new one is given its learner.

        Args:
            url: ``postgresql://user@host/name``, without a password.
            learner, labels, n_features, set_size, seed, model, create: as in `Session.open`.
            settings: as in `Session.open` where they make sense; ``lease`` and ``patience`` in seconds;
                ``learn=False`` never stands for the office of learning.
        """
        address = Address(url, patience=settings.get("patience", PATIENCE))
        asked = {
            "learner": learner,
            "labels": labels,
            "n_features": n_features,
            "set_size": set_size,
            "seed": seed,
        }
        shadows = settings.get("shadows", ())
        founded = founding.found(address, asked, model, create=create, shadows=shadows)
        if founded:
            log.warning("a new journal was made", extra={"journal": str(address)})
        session = cls(address, **settings)
        session.founded = founded
        return session

    # ------------------------------------------------------------ the model that decides

    def _rebuilt(self) -> Serving:
        """The newest model, whether it is published or not."""
        with self.journal.reading() as connection:
            now = load_published(connection)
            sql = "SELECT settings FROM published WHERE part = 'model'"
            row = None if now is None else connection.execute(sql, binary=True).fetchone()
            if now is not None and row is not None:
                return self._serving(now.version, now.learnt, now.time, now.parts["model"], loads(row[0]))
            model = newest(connection, self.address)
            found = connection.execute("SELECT coalesce(max(version), 0) FROM batches").fetchone()
            assert found is not None
            settings = {**model.settings.to_dict(), "erasures": model.erasures}
            data = model_bytes(model.learner)
            return self._serving(int(found[0]), model.stats.learnt, self.clock(), data, settings)

    def _serving(
        self, version: int, learnt: int, at: float, data: bytes, settings: dict[str, Any]
    ) -> Serving:
        learner = learner_from(data)
        return Serving(
            version,
            learnt,
            at,
            learner,
            frozenset(settings["retired"]),
            settings["frozen"],
            settings["erasures"],
        )

    def _pick_up(self, connection: Any) -> None:
        """A newer model, if there is one, for the next turn. A version never goes back."""
        mine = (self.coming or self.serving).version
        what = "version, learnt, time, data, settings"
        sql = f"SELECT {what} FROM published WHERE part = 'model' AND version > %s"
        row = connection.execute(sql, (mine,), binary=True).fetchone()
        if row is not None:
            version, learnt, at, data, settings = row
            self.coming = self._serving(version, learnt, at, data, loads(settings))

    def _follow(self) -> None:
        """Begin a turn with the newest model that is here."""
        if self.coming is not None:
            if self.coming.erasures != self.serving.erasures:
                self._entries.clear()
            self.serving, self.coming = self.coming, None
        self.learner, self.retired = self.serving.learner, self.serving.retired
        self.frozen = self.serving.frozen
        labels = self.learner.labels
        if labels != getattr(self, "labels", None):
            self.labels: tuple[str, ...] = labels  # type: ignore[assignment]
            self.known = frozenset(self.labels)

    def warm_up(self) -> None:
        """Compile what anybody would have to wait for."""
        warm_up(self.learner, self.settings.shadows)

    def model_file(self) -> bytes:
        """The model that was published last, as `Learner.save` writes it."""
        with self.journal.reading() as connection:
            row = connection.execute(
                "SELECT data FROM published WHERE part = 'model'", binary=True
            ).fetchone()
            return model_bytes(newest(connection, self.address).learner) if row is None else bytes(row[0])

    # ------------------------------------------------------------ threads

    def _hear(self) -> None:
        """Hear of new models, and be heard of; until the end, whatever happens to the database."""
        while not self._stop.is_set():
            try:
                with self.address.connect("superarm hears") as connection:
                    connection.execute("LISTEN superarm")
                    while not self._stop.is_set():
                        check(connection, self.address)
                        self.clock.learn(connection)
                        self._hear_learner(connection)
                        self._pick_up(connection)
                        connection.execute(ALIVE, self._told())
                        self._heard_until(connection, time.monotonic() + 1.0)
            except JournalForeign as error:  # the tables have moved on without this process
                self.fail(JournalDown(str(error)))
                self._stop.wait(1.0)
            except (psycopg.Error, JournalDown):
                self._stop.wait(RETRY_SECONDS)

    def _heard_until(self, connection: Any, until: float) -> None:
        while (left := until - time.monotonic()) > 0.0 and not self._stop.is_set():
            if list(connection.notifies(timeout=min(left, 0.25), stop_after=1)):
                self._pick_up(connection)

    def _told(self) -> tuple[Any, ...]:
        from superarm import __version__

        serving = self.coming or self.serving
        return self.process, self.clock(), serving.version, serving.time, __version__

    def _stand(self) -> None:
        """Stand for the office again and again; learn while it lasts."""
        while not self._stop.is_set():
            try:
                with self.address.connect("superarm learns", patience=60.0) as connection:
                    while not self._stop.is_set():
                        check(connection, self.address)
                        self._away = False
                        office = stand(connection, self.process, self.lease)
                        if office is None:
                            self._stop.wait(self.lease / 4.0)
                            continue
                        self._learn(office)
            except Deposed:
                log.warning("deposed: another process learns", extra={"who": self.process})
            except (psycopg.Error, JournalDown, JournalForeign) as error:
                if not self._away and not self._stop.is_set():  # once, until it is back
                    log.warning("learner", extra={"reason": str(error).splitlines()[0]})
                self._away = True
            except Exception as error:  # a bug must not end learning for ever
                self.learner_error = f"{type(error).__name__}: {error}"
                log.exception("learner")
            finally:
                self.learning = None
            self._stop.wait(min(RETRY_SECONDS, self.lease / 4.0))

    def _learn(self, office: Any) -> None:
        self.learning = Learning(office, self.settings, self.process, self.address)
        log.info(
            "learns",
            extra={"who": self.process, "term": office.term, "event_no": self.learning.model.seq},
        )
        self.learner_error = None
        while not self._stop.is_set():
            self._stop.wait(self.learning.turn())
        office.resign()

    # ------------------------------------------------------------ what people change

    def make(self, change: dict[str, Any]) -> dict[str, Any]:
        """Ask the process that learns for a change, and wait until it is made or refused."""
        if self.down is not None:
            raise self.down
        connection = self.address.connect("superarm changes")
        try:
            writer = Writer(connection, self.process)
            row = writer.rows([(self.clock(), CHANGE, "", None, None, dumps(change))])[0]
            writer.insert([row])
            until = time.monotonic() + CHANGE_SECONDS
            while time.monotonic() < until:
                found = connection.execute(
                    "SELECT body FROM results WHERE number = %s", (row.number,)
                ).fetchone()
                if found is not None:
                    note: dict[str, Any] = loads(found[0])
                    if note.get("refused"):
                        raise Refused(note["refused"], field=note.get("field"))
                    self._pick_up(connection)
                    self.refresh(now=True)
                    self._show_coming()
                    return note
                time.sleep(0.02)
        except psycopg.Error as error:
            raise JournalDown(f"the change may not have been kept: {str(error).splitlines()[0]}") from error
        finally:
            connection.close()
        raise JournalDown(
            "nobody learns at the moment: the change is kept, and made as soon as somebody does"
        )

    def _show_coming(self) -> None:
        """Whoever made a change sees it at once, also if no turn has begun since."""
        coming = self.coming or self.serving
        self.retired, self.frozen = coming.retired, coming.frozen
        self.labels = coming.learner.labels  # type: ignore[assignment]
        self.known = frozenset(self.labels)

    def erase(self, ids: Iterable[str] | None = None, before: float | None = None) -> int:
        asked = None if ids is None else list(dict.fromkeys(ids))
        if asked is not None:
            found = self.journal.kept(asked)
            for id_ in asked:
                if id_ not in found:
                    raise UnknownDecision.must("id", "erase", "that of a decision", id_)
        return int(self.make({"what": "erase", "ids": asked, "before": before})["erased"])

    # ------------------------------------------------------------ failing, and the end

    def fail(self, error: JournalDown) -> None:
        if self.down is None:
            log.error("journal down", extra={"reason": str(error)})
        self.down, self._retry_at = error, time.monotonic() + RETRY_SECONDS

    def recover(self) -> None:
        """Try again; in the thread that writes."""
        self._retry_at = time.monotonic() + RETRY_SECONDS
        try:
            if self.writer is None:
                self.open_writer()
            else:
                with failures(self.address):
                    self.probe()
        except SuperarmError as error:
            self._give_up(error)
            raise
        self.down = None
        log.info("journal up")

    def parts(self) -> tuple[Any, Any]:
        """What takes turns, and what looks after it."""
        from superarm.service.core.postgres.group import SharedGroup, SharedUpkeep

        group = SharedGroup(self)
        return group, SharedUpkeep(group)

    def close(self) -> None:
        """Resign, and leave."""
        self._stop.set()
        for thread in self._threads:
            thread.join(self.patience)
        if self.writer is not None:
            self.writer.close()
        with suppress(psycopg.Error, SuperarmError), self.journal.reading() as connection:
            connection.execute("DELETE FROM processes WHERE process = %s", (self.process,))
        self.journal.close()


ALIVE = f"""
INSERT INTO processes VALUES (%s, %s, {NOW}, %s, %s, %s) ON CONFLICT (process) DO UPDATE SET
  beat = excluded.beat, version = excluded.version, published = excluded.published"""
