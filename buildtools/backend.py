"""The build back end that pip calls: setuptools, and `ziglang` where there is no C compiler."""

from __future__ import annotations

from compiler import wants_zig
from setuptools.build_meta import *  # noqa: F403


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    return ["ziglang"] if wants_zig() else []


get_requires_for_build_editable = get_requires_for_build_wheel
