"""Pages of one HTML file: a card that explains itself, and a ledger over time."""

from labeldp.app.report.card_report import Kind, render_report
from labeldp.app.report.ledger_page import render_ledger
from labeldp.app.report.page import write_page

__all__ = ["Kind", "render_ledger", "render_report", "write_page"]
