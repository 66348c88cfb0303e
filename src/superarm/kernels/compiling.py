"""Compiling, and a cache on disk that can only help.

`kernel` compiles a function that other compiled code calls; it becomes part of its callers and is
never cached on its own: a cache entry names the types of its arguments, and one with the state of a
user's own learner in it could not be read where that learner is not at hand. `entry` compiles what
Python calls, with a cache whose content can never stop the program: what cannot be read is a miss,
what cannot be written is left. Compiling that takes a while is told to the logger ``superarm.compiling``.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Timer
from types import FunctionType
from typing import Any, TypeVar

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache, NullCache
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload

from superarm.sources import digest, modules_behind

__all__ = ["borrowed", "by_row", "entry", "kernel", "prefetch", "resolve", "specialise"]

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("superarm.compiling")
PATIENCE = 1.0  # seconds of compiling before it is worth a word

# As fast as fastmath=True (8 x faster than none), but NaN and inf stay what they are.
FAST = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "nogil": True,
    "forceinline": True,
}
# No code for calls from Python, which for a state of thirty arrays takes longer to make than the rest.
INSIDE = {**FAST, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile a function for use inside of other compiled functions."""
    return _Kernel(function, targetoptions={**INSIDE, "nopython": True})


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """What `kernel` makes. Python can call it, too: then it is compiled once more, for that."""

    def add_overload(self, compiled: Any) -> None:
        self.overloads[tuple(compiled.signature.args)] = compiled  # not where calls from Python look

    def _compile_for_args(self, *arguments: Any, **names: Any) -> Any:
        known = len(self._called.overloads)
        code = self._called._compile_for_args(*arguments, **names)
        for kinds, compiled in list(self._called.overloads.items())[known:]:
            self._insert(
                [kind._code for kind in kinds], compiled.entry_point, False
            )  # calls find it from now on
        return code

    @cached_property
    def _called(self) -> Any:
        return numba.njit(self.py_func, **FAST)


def entry(function: F) -> F:
    """Compile a function that Python calls with plain arrays and numbers; kept on disk."""
    return _cached(function, function.__name__, (function,))  # type: ignore[return-value]


def specialise(
    template: Callable[..., Any], name: str, sources: Sequence[object], **names: Any
) -> Callable[..., Any]:
    """Compile ``template`` with some of its global names replaced; ``sources`` are what it was made of.

    Numba cannot cache a closure over compiled functions; a copy with other globals it can.
    """
    assert isinstance(template, FunctionType)
    copy = FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
    copy.__module__ = template.__module__
    copy.__qualname__ = f"{template.__name__}-{name}"
    return _cached(copy, f"{template.__name__.lstrip('_')} of {name}", (template, *sources))


def _cached(function: Callable[..., Any], called: str, sources: Sequence[object]) -> Callable[..., Any]:
    # Numba's cache notices a change in a function's own file only, not in what it calls: a stamp of
    # all files behind it, in its name, makes the cache miss after any change.
    stamp = digest(modules_behind(*sources))
    function.__qualname__ = f"{function.__qualname__}-{stamp}"
    compiled = numba.njit(function, **FAST, no_cfunc_wrapper=True)
    compiled._cache = _Cache(function, called)
    return compiled  # type: ignore[no-any-return]


class _Cache(NullCache):  # type: ignore[misc]
    """Numba's cache, for which every failure is a miss; or none, where no folder can be written."""

    def __init__(self, function: Callable[..., Any], called: str) -> None:
        self.disk: Any = NullCache()
        with contextlib.suppress(Exception):
            self.disk = FunctionCache(function)
        nowhere = "not kept: no folder for it can be written, set NUMBA_CACHE_DIR"
        kept = nowhere if self.disk.cache_path is None else "kept for the next time"
        self.message = f"compiling {called}, some seconds; {kept}"

    def load_overload(self, *arguments: Any) -> Any:
        with contextlib.suppress(Exception):
            found = self.disk.load_overload(*arguments)
            if found is not None:
                return found
        self.waiting = Timer(PATIENCE, log.info, (self.message,))
        self.waiting.daemon = True
        self.waiting.start()
        return None

    def save_overload(self, *arguments: Any) -> None:
        self.waiting.cancel()
        try:
            self.disk.save_overload(*arguments)
        except Exception:  # an index that cannot be read is in the way: start it anew
            with contextlib.suppress(Exception):
                self.disk.flush()
                self.disk.save_overload(*arguments)


def resolve(function: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The compiled code for arguments of exactly these types.

    Calling it skips Numba's look at the type of every argument, two thirds of a single call.
    """
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(kinds)
    return function.overloads[kinds].entry_point  # type: ignore[no-any-return]


def by_row(at: int, dense: Callable[..., Any], sparse: Callable[..., Any]) -> Callable[..., Any]:
    """A function for compiled code that is ``dense`` or ``sparse``, by the row in argument ``at``."""

    def function(*arguments: Any) -> Any:
        raise TypeError("for compiled code only")

    @overload(function, jit_options=INSIDE, strict=False)  # type: ignore[untyped-decorator]
    def choose(*arguments: Any) -> Callable[..., Any]:
        kind = arguments[at]
        if "factor" in getattr(kind, "fields", ()):  # Features: look at the row inside
            kind = kind[kind.fields.index("x")]
        return sparse if "indices" in getattr(kind, "fields", ()) else dense

    function.__module__ = dense.__module__  # where its sources are
    return function


@intrinsic
def borrowed(typingctx, value):  # type: ignore[no-untyped-def]
    """``value`` (an array, or a tuple with arrays in it) without reference counting.

    Counting references costs half of a round. A kernel's caller keeps the arrays alive, so the
    loops work on uncounted copies of their descriptors.
    """

    def strip(context: Any, builder: Any, kind: Any, data: Any) -> Any:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, data)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return array._getvalue()
        if isinstance(kind, types.BaseTuple):
            for i, part in enumerate(kind):
                stripped = strip(context, builder, part, builder.extract_value(data, i))
                data = builder.insert_value(data, stripped, i)
        return data

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return strip(context, builder, signature.args[0], arguments[0])

    return value(value), codegen


@intrinsic
def prefetch(typingctx, array, index):  # type: ignore[no-untyped-def]
    """Ask for the memory of ``array[index:]`` ahead of its use: one cache line, and nothing waits."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        place = builder.gep(view.data, [arguments[1]])
        pointer = builder.bitcast(place, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0i8")
        builder.call(call, [pointer, number(0), number(3), number(1)])  # to be read, kept, data
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
