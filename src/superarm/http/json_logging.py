"""Log lines as JSON on standard error; logging never blocks, not even when the lines are not read."""

from __future__ import annotations

import json
import logging
import os
import time
from datetime import UTC, datetime
from logging.handlers import QueueHandler
from queue import Queue
from threading import Thread
from typing import Any

from superarm._types import JsonObject

STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
MAX_LINES = 10_000  # that wait to be written
FLUSH_TIMEOUT = 1.0  # seconds


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        time_ = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: JsonObject = {
            "time": time_.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in STANDARD_FIELDS}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class NonBlockingHandler(QueueHandler):
    """A thread writes the lines; those that find no room are dropped, and the next line says how many.

    Args:
        descriptor: the file to write to.
    """

    queue: Queue[Any]

    def __init__(self, descriptor: int) -> None:
        super().__init__(Queue(MAX_LINES))
        self.setFormatter(JsonFormatter())
        self.descriptor = descriptor
        self.dropped = 0  # since the last line that was written
        self.dropped_total = 0
        Thread(target=self._write, name="superarm-log", daemon=True).start()

    def prepare(self, record: logging.LogRecord) -> bytes:
        line = self.format(record)
        if self.dropped:
            line = f'{line[:-1]}, "lines_dropped_before": {self.dropped}}}'
        return f"{line}\n".encode()

    def enqueue(self, record: Any) -> None:
        super().enqueue(record)
        self.dropped = 0

    def handleError(self, record: logging.LogRecord | None = None) -> None:
        """Count a line that was dropped: the queue is full, the reader is gone, or the line has no text."""
        self.dropped += 1
        self.dropped_total += 1

    def _write(self) -> None:
        while True:
            line = self.queue.get()
            try:
                while line:
                    line = line[os.write(self.descriptor, line) :]
            except OSError:
                self.handleError()
            self.queue.task_done()

    def flush(self) -> None:
        """Wait until all lines are written, for `FLUSH_TIMEOUT` at most."""
        until = time.monotonic() + FLUSH_TIMEOUT
        while self.queue.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.005)


def log_to_stderr() -> NonBlockingHandler:
    """Send all log lines of this process to standard error."""
    handler = NonBlockingHandler(2)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    # a line for every request that is not HTTP would be a way to fill a disk; the metrics count them
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    return handler
