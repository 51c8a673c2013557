"""What the page is asked to release: what is shown is what is carried out."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from labeldp._values import as_fraction
from labeldp.accounts.budget import Budget, Charge, new_charge
from labeldp.accounts.ledger import Ledger
from labeldp.app.model_fit import FileFit, fit_file
from labeldp.app.option import open_ledger
from labeldp.app.page.work import Work
from labeldp.app.reports import Problems, privatize_and_report
from labeldp.tables.file_release import FileRelease


@dataclass(frozen=True)
class ReleaseRequest:
    """A release that was asked for.

    Attributes
    ----------
    kind : {"table", "model"}
    source, out, ledger : Path
    report : Path or None
    limit : float or None
        Of a ledger that is new; one that is there must have the same, or it refuses.
    options : dict
        Of `labeldp.privatize_file` or `labeldp.fit_file`, by name.
    id : str
        Is sent with the button: it releases the request that it was shown with.
    """

    kind: Literal["table", "model"]
    source: Path
    out: Path
    ledger: Path
    report: Path | None
    limit: float | None
    options: dict[str, Any]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @property
    def price(self) -> Charge:
        """What it costs in all."""
        price = Budget(as_fraction(self.options["epsilon"]) + as_fraction(self.options.get("score") or 0))
        people = self.options["rows_per_person"]
        return new_charge(self.kind, price, purpose="other", rows_per_person=people)

    def open_ledger(self) -> Ledger:
        """Return the ledger to charge; a new file is created with its first charge."""
        return open_ledger(self.ledger, self.limit)

    def carry_out(self, ledger: Ledger, work: Work) -> tuple[FileRelease | FileFit, Problems]:
        """Release the table, or fit the model, as the command does; return what went wrong afterwards too."""
        options = {**self.options, "ledger": ledger, "report": self.report}
        if self.kind == "model":
            fit = fit_file(self.source, self.out, **options, while_reading=work.reading())
            return fit, fit.problems
        return privatize_and_report(self.source, self.out, **options, progress=work.progress)
