"""``labeldp privatize``, a file in, the same file with private labels out, and its card; and ``labeldp page``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from labeldp._values import Data, parse_integer
from labeldp.accounts.ledger import ledger_notes
from labeldp.app.cli.commands import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import hint_prompt, hints_note, notify, print_status, progress
from labeldp.app.options import Drop, Field, Labels, LedgerOptions, Modules, ReleaseOptions, Shares, Source


def collect_mechanism_options(
    mechanism: Annotated[
        str,
        Option(
            help="How labels are randomised: auto, laplace, rp, rr-on-bins, staircase, two-point or unbiased. "
            "auto takes the one with the least expected error; any other releases labels of it alone."
        ),
    ] = "auto",
    zeta: Annotated[float | None, Option(metavar="ζ", help="Half-width of rp's window, as in the paper.")] = None,
    epsilon_prior: Annotated[
        float | None,
        Option(
            metavar="ε",
            help="The part of ε for the prior, an estimate of where labels lie; by default it follows from the "
            "number of rows and ε.",
        ),
    ] = None,
    trust: Annotated[
        str,
        Option(
            metavar="curator|local",
            help="Who sees labels before noise: a curator, or nobody (each is randomised on its own).",
        ),
    ] = "curator",
    purpose: Annotated[
        Literal["training", "statistics", "values"],
        Option(
            "--for",
            metavar="training|statistics|values",
            help="training: labels to train models on. statistics: unbiased labels, for means and totals. "
            "values: as the mechanism drew them, for those who debias themselves.",
        ),
        Field(
            "What will the column be used for?",
            {"training": "To train models", "statistics": "For means and totals"},
        ),
    ] = "training",
    model: Annotated[
        bool,
        Option(
            "--no-model",
            help="A mechanism draws each label by itself: labels for training do not learn from other columns.",
        ),
        Field("Draw each value by itself, without a model of the other columns"),
    ] = True,
) -> Data:
    """Return the arguments that say how labels are randomised."""
    return locals()


@command(
    "Release",
    "homes.parquet -o private.parquet --label price --bounds 0 5 --epsilon 1 --ledger budget.db",
    stopped="Stopped. A table that is there is whole, with its card beside it. Charges in the ledger "
    "stay spent: labels may have been read.",
)
def privatize(
    source: Source,
    out: Annotated[
        str, Option("--out", "-o", metavar="OUT", help="The file to write."), Field("Name of the output")
    ],
    label: Labels,
    *,
    shares: Shares = None,
    ledger: LedgerOptions,
    randomisation: Annotated[Any, collect_mechanism_options],
    save_model: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Save the model behind the labels of one column, and its private labels, in a folder: it costs "
            "nothing more, and whoever has it can compute the labels again (labeldp verify --model).",
        ),
    ] = None,
    drop: Drop = (),
    shuffle: Annotated[
        bool,
        Option(help="Write the rows in random order; without it their order is public."),
        Field("Random order of rows"),
    ] = False,
    modules: Modules = (),
    **shared: ReleaseOptions,
) -> None:
    """Write a table again with private labels; all its other columns stay as they are.

    Released labels are ε-differentially private: whoever sees them, and knows everything else in the table, can
    raise their odds on a true label by a factor of at most e^ε.

    Labels for training know the other columns that are written: they are means under a private model, which takes
    as long as a fit. So models that are trained on them are far better. With an option of one mechanism, with
    --trust local or for another purpose, a mechanism draws each by itself.

    Several labels of a row share ε, as in --label pay,rent --shares 3,1 --bounds 0 9000 --bounds 0 2500: none is a
    feature of another, and a row that lacks one of them is a row without a label.

    Releases: OUT, and OUT.card.json, which says how; pass it on with the file. All but the
    labels is public: columns, the number of rows, and their order unless you --shuffle.
    """
    from labeldp.app.file_release import privatize_file

    import_modules(modules)
    with progress() as bars:
        hints = hint_prompt(bars, "Release the table as it is?")
        release = privatize_file(
            source,
            out,
            label=label,
            shares=shares,
            ledger=ledger,
            **randomisation,
            save_model=save_model,
            drop=drop,
            shuffle=shuffle,
            progress=bars,
            hints=hints,
            notice=partial(notify, bars),
            **shared,
        )
    locations = f"The table is in {release.path}, its card in {release.card_path}; both may be made public."
    print_status(release.summary(), *release.notes, *hints_note(hints), locations, *ledger_notes(ledger))


@command("Start here", "tables/", stopped="The page is closed.")
def page(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The folder with your tables.")] = Path(),
    no_open: Annotated[bool, Option(help="Do not open the browser; only show the address.")] = False,
    port: Annotated[int, Option(help="The port; 0 takes any that is free.")] = 0,
) -> None:
    """Do the whole job in a browser: table, label, budget, release, and earlier releases.

    The server listens on this machine only, and to the browser that opens the address first. Nothing outside
    FOLDER is read or written, nothing is sent elsewhere, and labels are never shown. It ends by its
    button, by Ctrl-C, or half an hour after its last page was closed.

    Releases: what you release on the page, as privatize, fit and regress would, and its card.
    """
    from labeldp.app.page import serve

    serve(folder, port=parse_integer(port, "port", 0, 65535), browse=not no_open, say=print_status)
