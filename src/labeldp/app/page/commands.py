"""The same release as commands, for those who want to repeat or verify it without the page."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields

from labeldp.app.options import OPTIONS
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.unfinished import ReleaseRequest
from labeldp.app.sentences import as_flag
from labeldp.errors import Setting

COMMANDS = {"table": "privatize", "model": "fit", "regression": "regress"}


def powershell_quote(text: str) -> str:
    """Return a text as PowerShell takes it for one word; it knows several marks for single quotes.

    Examples
    --------
    >>> powershell_quote("homes.csv"), powershell_quote("the owner's pay")
    ('homes.csv', "'the owner''s pay'")
    """
    if re.fullmatch(r"[\w./:+-]+", text, re.ASCII):
        return text
    return "'" + re.sub("(['\u2018\u2019\u201a\u201b])", r"\1\1", text) + "'"


def another_name(name: str, folder: ChosenFolder) -> str:
    """Return a name like that of a file or folder, that nothing in the chosen folder has yet.

    Examples
    --------
    >>> import tempfile
    >>> folder = ChosenFolder(tempfile.mkdtemp())
    >>> (folder.root / "flats.csv.gz").touch()
    >>> another_name("flats.csv.gz", folder)
    'flats-2.csv.gz'
    """
    dot = name.find(".", name.rfind("/") + 2)  # a name may begin with one
    stem = name if dot < 0 else name[:dot]
    return folder.free_name(stem, name[len(stem) :])


def commands(release: ReleaseRequest, folder: ChosenFolder) -> dict[str, list[list[str]]]:
    """Return, for each shell, how to repeat a release, verify, sign, and use a model: commands by parts."""
    out = folder.name(release.out)
    given = {**release.options, "out": another_name(out, folder), "ledger": folder.name(release.ledger)}
    dialect = given.pop("dialect")
    given |= {field.name: getattr(dialect, field.name) for field in fields(dialect)} | {"limit": release.limit}
    if release.report is not None:
        given["report"] = another_name(folder.name(release.report), folder)
    changed = {name: value for name, value in given.items() if value not in (None, (), OPTIONS[name].default)}
    card = f"{out}{'/' if release.kind == 'model' else '.'}card.json"
    lines = {}
    for shell, quote in {"bash": shlex.quote, "PowerShell": powershell_quote}.items():
        words = [f"labeldp {COMMANDS[release.kind]} {quote(folder.name(release.source))}"]
        for name, value in changed.items():
            repeated = value if name == "na" else [value]
            words += [as_flag(Setting(name, each), quote) for each in repeated]
        lines[shell] = [words, [f"labeldp verify {quote(card)}"]]
        if release.kind == "model":
            lines[shell].append([f"labeldp predict {quote(out)} new_table.csv", "--out predictions.csv"])
    return lines
