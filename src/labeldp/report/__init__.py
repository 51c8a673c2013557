"""The report: a card, or sections of one's own, as one HTML file that explains itself."""

from labeldp.release.numbers import number
from labeldp.report.card_report import render_report, write_report
from labeldp.report.figures import COLOURS, INK, SOFT, blank
from labeldp.report.page import Section, render_page, write_page

__all__ = [
    "COLOURS",
    "INK",
    "SOFT",
    "Section",
    "blank",
    "number",
    "render_page",
    "render_report",
    "write_page",
    "write_report",
]
