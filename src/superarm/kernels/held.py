"""Held: many arrays as one argument.

A call from Python unpacks each array among its arguments, and a state has fifty of them: that takes
longer than a round, and the code for it longer to compile than the rest. So where they lie is written
down once, a few words for each, and a call hands over one address:

    model = Held(Model(state, scratch, s))          in Python, whenever the state is another one
    loop.decide(model, ...)
    state, scratch, s = unpacked(model)             in compiled code

Nothing is copied: compiled code reads and writes the arrays themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import populate_array

__all__ = ["Held", "unpacked"]

WORD = ir.IntType(64)


class Held(int):
    """The address of what describes ``value``, a (nested) tuple of arrays and numbers, and keeps it alive."""

    value: Any
    kind: Any  # for Numba
    words: np.ndarray[Any, Any]

    def __new__(cls, value: Any) -> Held:
        kind = numba.typeof(value)
        words = np.array(list(_words(kind, value)), np.uint64)
        held = super().__new__(cls, words.ctypes.data)
        held.value, held.kind, held.words = value, _HeldType(kind), words
        return held


def _words(kind: Any, value: Any) -> Iterator[int]:
    """An array is its address, its shape and its strides; a number is a word."""
    if isinstance(kind, types.BaseTuple):
        for part, one in zip(kind, value, strict=True):
            yield from _words(part, one)
    elif isinstance(kind, types.Array):
        yield value.ctypes.data
        for number in (*value.shape, *value.strides):
            yield number % 2**64
    elif isinstance(kind, types.Float):
        yield int(np.float64(value).view(np.uint64))
    elif isinstance(kind, types.Integer | types.Boolean):
        yield int(value) % 2**64
    else:
        raise TypeError(f"a state must be made of arrays, numbers and tuples of them, got {value!r}")


class _HeldType(types.Type):  # type: ignore[misc]
    def __init__(self, inside: Any) -> None:
        self.inside = inside
        super().__init__(f"Held({inside})")

    @property
    def key(self) -> Any:
        return self.inside  # not its name: two classes may be called alike


@typeof_impl.register(Held)  # type: ignore[untyped-decorator]
def _typeof(value: Held, context: Any) -> Any:
    return value.kind


@register_model(_HeldType)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, WORD)


@unbox(_HeldType)  # type: ignore[untyped-decorator]
def _address(kind: Any, value: Any, c: Any) -> Any:
    return NativeValue(c.pyapi.long_as_longlong(value))


@intrinsic
def unpacked(typingctx, held):  # type: ignore[no-untyped-def]
    """What a `Held` holds, without reference counting: see `borrowed`."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        words = builder.inttoptr(arguments[0], WORD.as_pointer())
        places = iter(range(2**31))

        def word(kind: Any = WORD) -> Any:
            place = builder.gep(words, [ir.Constant(WORD, next(places))])
            return builder.load(builder.bitcast(place, kind.as_pointer()))

        def read(kind: Any) -> Any:
            if isinstance(kind, types.BaseTuple):
                return context.make_tuple(builder, kind, [read(part) for part in kind])
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder)
                data = word(context.get_data_type(kind.dtype).as_pointer())
                shape, strides = ([word() for _ in range(kind.ndim)] for _ in range(2))
                size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
                populate_array(array, data, shape, strides, size, None)
                return array._getvalue()
            if isinstance(kind, types.Float):
                number = word(ir.DoubleType())
                return number if kind.bitwidth == 64 else builder.fptrunc(number, ir.FloatType())
            number = word()
            if isinstance(kind, types.Boolean):
                return cgutils.is_true(builder, number)
            return number if kind.bitwidth == 64 else builder.trunc(number, ir.IntType(kind.bitwidth))

        return read(signature.args[0].inside)

    return held.inside(held), codegen
