"""A page about a fitted estimator, in one file, to be shared."""

from hck.report.write import write_report

__all__ = ["write_report"]
