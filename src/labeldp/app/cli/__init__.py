"""The command line: ``labeldp --help`` leads the way. Modules add their commands when they are imported."""

from labeldp.app.cli import planning, privatize, fit, surveys, cards, audit, ledgers  # noqa: F401, I001 (in the order of help)
from labeldp.app.cli.commands import EXIT_CODES, app
from labeldp.app.options import OPTIONS

__all__ = ["EXIT_CODES", "OPTIONS", "app"]
