"""The report: a card as one HTML file that explains itself."""

from labeldp.app.report.card_report import render_report, write_report
from labeldp.app.report.page import Kind, write_page

__all__ = ["Kind", "render_report", "write_page", "write_report"]
