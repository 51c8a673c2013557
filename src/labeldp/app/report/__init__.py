"""The report: a card as one HTML file that explains itself."""

from labeldp.app.report.card_report import Kind, render_report
from labeldp.app.report.page import write_page

__all__ = ["Kind", "render_report", "write_page"]
