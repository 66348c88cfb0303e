"""The extras, which are not in the light core: their packages, and the error with the command that installs them."""

from __future__ import annotations

import importlib.util

from superarm.errors import MissingExtra

# extra: what it is for, and the packages that it brings (pyproject.toml has their versions)
EXTRAS = {
    "logs": ("tables, decision logs and statistics", ("polars", "scipy")),
    "plots": ("figures and reports", ("altair", "vl_convert", "polars", "scipy")),
    "experiments": ("grids of runs and their reports", ("joblib", "altair", "vl_convert", "polars", "scipy")),
    "sklearn": ("scikit-learn", ("sklearn", "scipy")),
    "data": ("downloads of data", ("requests",)),
    "serve": ("the service", ("httptools", "orjson", "prometheus_client", "uvicorn")),
    "label": ("labelling", ("httptools", "orjson", "PIL", "prometheus_client", "uvicorn")),
    "dask": ("--engine dask", ("distributed",)),
    "postgres": ("PostgreSQL", ("psycopg",)),
    "onnx": ("export to ONNX", ("onnx",)),
    "features": ("image features", ("keras",)),
}


def require_extra(extra: str, *needed: str) -> None:
    """Raise one sentence with the command to type, unless all packages of an extra (or those that are named) are here.

    A command calls it before it imports any of them. Looking for a package does not import it.

    >>> require_extra("logs")
    """
    purpose, packages = EXTRAS[extra]
    missing = [name for name in needed or packages if importlib.util.find_spec(name) is None]
    if missing:
        lack = f"the extra for {purpose} is not installed (no {', '.join(missing)})"
        raise MissingExtra(f'{lack}: pip install "superarm[{extra}]"')
