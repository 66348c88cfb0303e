"""Reports: figures, tables and one HTML page, made from a store of results alone."""

from superarm._extras import need
from superarm.report.write import write_report

need("plots")

__all__ = ["write_report"]
