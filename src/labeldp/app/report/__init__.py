"""The report: a card as one HTML file that explains itself."""

from labeldp.app.report.card_report import render_report, write_report
from labeldp.app.report.figures import require_matplotlib
from labeldp.app.report.page import write_page

__all__ = ["render_report", "require_matplotlib", "write_page", "write_report"]
