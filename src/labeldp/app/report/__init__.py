"""The report: a card, or sections of one's own, as one HTML file that explains itself."""

from labeldp.accounts.numbers import number
from labeldp.app.report.card_report import render_report, write_report
from labeldp.app.report.figures import COLOURS, INK, SOFT, blank, require_matplotlib
from labeldp.app.report.page import Section, render_page, write_page

__all__ = [
    "COLOURS",
    "INK",
    "SOFT",
    "Section",
    "blank",
    "number",
    "render_page",
    "render_report",
    "require_matplotlib",
    "write_page",
    "write_report",
]
