"""Which level of processor the vectorised loops are for: chosen once, when this module is imported.

``base`` runs everywhere (x86-64, or what the compiler takes for granted elsewhere), ``v3`` needs AVX2 and FMA,
``v4`` AVX-512. The environment variable SUPERARM_CPU forces one. The level changes last bits of sums: it is
recorded with models and results.
"""

import os

from numpy._core._multiarray_umath import __cpu_features__ as features

from superarm.errors import InvalidInput

cdef extern from "kernels.h":
    const Kernels kernels_base
    const Kernels kernels_v3
    const Kernels kernels_v4
    const float c_clip_start "CLIP_START", c_clip_limit "CLIP_LIMIT", c_max_feature "MAX_FEATURE"
    const int SUPERARM_LEVELS  # 3 where the levels of x86-64 were built, else 1

# of kernels.h, for Python
CLIP_START = c_clip_start
CLIP_LIMIT = c_clip_limit
MAX_FEATURE = c_max_feature

LEVELS = ("base", "v3", "v4")[:SUPERARM_LEVELS]
_V3 = ("AVX2", "FMA3", "F16C")
_V4 = ("AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL")


def levels() -> tuple[str, ...]:
    """Return the levels that were built and that this processor has, lowest first."""
    has = {"base": True, "v3": all(map(features.get, _V3))}
    has["v4"] = has["v3"] and (features.get("AVX512_SKX", False) or all(map(features.get, _V4)))
    return tuple(level for level in LEVELS if has[level])


def _choose():
    wanted, possible = os.environ.get("SUPERARM_CPU"), levels()
    if wanted is None:
        return possible[len(possible) - 1]
    if wanted not in possible:
        one_of = f"one of {', '.join(possible)} on this processor"
        raise InvalidInput.must("SUPERARM_CPU", "the environment", one_of, wanted)
    return wanted


LEVEL = _choose()
kernels = &kernels_base
if SUPERARM_LEVELS > 1:
    kernels = &kernels_v4 if LEVEL == "v4" else &kernels_v3 if LEVEL == "v3" else &kernels_base
