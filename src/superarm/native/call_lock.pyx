"""The lock of a learner: its calls take turns, as compiled loops work on the learner's own arrays without the GIL."""

from os import getpid
from threading import RLock


cdef class CallLock:
    """A lock that a thread may take again, and of which compiled code can tell for nothing whether it is taken.

    A call that keeps the GIL from its beginning to its end need not take it, but wait while ``depth`` is not 0.
    """

    def __init__(self) -> None:
        self.lock, self.pid = RLock(), getpid()

    def __enter__(self) -> None:
        if self.pid != getpid():  # a forked process: the thread that held it is not in it
            self.lock, self.pid, self.depth = RLock(), getpid(), 0
        self.lock.acquire()
        self.depth += 1

    def __exit__(self, kind, error, trace) -> None:
        self.depth -= 1
        self.lock.release()
