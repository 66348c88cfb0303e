"""Reports: figures, tables and one HTML page, made from a store of results alone."""

from superarm._extras import require_extra

require_extra("plots")  # before the modules below import Polars

from superarm.report.write import write_report  # noqa: E402

__all__ = ["write_report"]
