"""Reports: figures, tables and one HTML page, made from a store of results alone."""

from superarm.report.write import write_report

__all__ = ["write_report"]
