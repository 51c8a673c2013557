"""Options of commands, declared for Typer: shared ones, and groups that make one argument of several options.

Commands declare their other options themselves. `OPTIONS` lists all by name, for messages and for the forms of the
page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from types import FunctionType, NoneType
from typing import Annotated, Any, NewType, get_args

from typer import Argument, Option

from labeldp._values import Data, Epsilon, LabelBounds, parse_positive
from labeldp.accounts.budget import Budget, parse_statement
from labeldp.accounts.ledger import Ledger
from labeldp.app.typed_text import parse_amount, parse_count, parse_figure, split_names
from labeldp.errors import ParameterError, Setting
from labeldp.tables.dialect import Dialect

Names = Sequence[str]
"""Names in one text, with commas between."""

Words = Collection[str]
"""Words of an option that may be repeated."""

Formulas = tuple[str, ...]
"""Formulas of an option that may be repeated."""

Statement = NewType("Statement", str)
Text = str | None
File = Path | None


@dataclass(frozen=True, slots=True)
class Field:
    """The field of an option in the page's forms.

    Attributes
    ----------
    label : str
        Empty where the page has no field.
    choices : mapping or None
        Values to choose from, with a text for each.
    """

    label: str = ""
    choices: Mapping[str, str] | None = None


# ---- options of several commands ----------------------------------------------------------------------

Source = Annotated[str, Argument(metavar="IN", help="A table: a CSV, TSV, Excel or Parquet file.")]
Label = Annotated[str, Option(metavar="COLUMN", help="The column of labels, numbers."), Field("Private column")]
Labels = Annotated[
    Names,
    Option(
        "--label",
        metavar="COLUMN",
        help="The column of labels, numbers; or several, such as pay,rent, which share ε: a name that has a comma "
        "stands in quotes.",
    ),
    Field("Private column"),
]
Shares = Annotated[
    Sequence[float] | None,
    Option(metavar="NUMBERS", help="Parts of ε of several labels, such as 3,1; by default all are equal."),
]
Bounds = Annotated[
    LabelBounds,
    Option(
        help="Public bounds of the label, known without looking at the data; labels outside are clipped. Of "
        "several labels: one pair for all, or repeated, one for each in order."
    ),
    Field("Lowest and highest possible value"),
]
Missing = Annotated[
    str,
    Option(
        metavar="error|drop",
        help="Rows whose label is missing or not finite: stop, or leave them out (which rows is public then). For "
        "regress, rows with a gap in a column that is used too.",
    ),
    Field("Leave out rows without a private value"),
]
Format = Annotated[
    Text,
    Option(help="Format of the table, where its name does not show it: csv, tsv, xlsx or parquet."),
]
RowsPerPerson = Annotated[
    int,
    Option(help="Rows that one person may have; the cost covers them all.", rich_help_panel="Budget"),
    Field("Rows that one person may have"),
]
_people = partial(Option, rich_help_panel="Budgets for people and time")
Segment = Annotated[
    Text,
    _people(help="Segment of all rows, such as a night: charges of other segments are for other rows."),
    Field("These rows are new, and belong to"),
]
SegmentBy = Annotated[Text, _people(metavar="COLUMN", help="Public column with the segment of each row.")]
RowId = Annotated[
    Text, _people("--id", metavar="COLUMN", help="Public id of rows; those of another segment are refused.")
]
Person = Annotated[Text, _people(metavar="COLUMN", help="Public id of people, whose rows are then counted.")]
MostRows = Annotated[
    int | None, _people(help="Use so many rows of a person at most, chosen by a public seed; others stay empty.")
]
Features = Annotated[Names, Option(help="Columns to learn from, such as a,b,c; all by default.")]
Drop = Annotated[Names, Option(help="Columns to leave out, such as id,name."), Field("Leave out")]
Categories = Annotated[Names, Option(help="Columns of numbers that are categories, such as zip,region.")]
Force = Annotated[bool, Option(help="Replace existing files.")]
Modules = Annotated[
    Words,
    Option(
        "--import",
        metavar="MODULE",
        help="Mechanisms of your own: a file, such as ./mine.py, or an installed module; the current folder is "
        "not searched. It is run: name only what you trust.",
    ),
]
CardFile = Annotated[Path, Argument(metavar="CARD", help="A card, the file it lies beside, or a model's folder.")]
PaidFrom = Annotated[
    File,
    Option(
        "--ledger",
        help="The extract of the ledger that it was charged to, which labeldp ledger --json writes; for a report "
        "of your own, the ledger. It must hold these charges.",
    ),
]
AsJson = Annotated[bool, Option("--json", help="For scripts: the same as JSON.")]


Epsilons = Annotated[
    Sequence[float],
    Option("--epsilon", "-e", metavar="NUMBERS", help="Values of ε, with commas.", show_default="0.1,0.3,1,3"),
]

# ---- groups: options that make one argument -----------------------------------------------------------

_text = partial(Option, rich_help_panel="How a text file is written, where it does not show")
_header = partial(Option, rich_help_panel="Header and totals, of text files and sheets")
_record = partial(Option, rich_help_panel="For the record")


def read_dialect(
    separator: Annotated[
        Text,
        _text(
            metavar="MARK", help="Character between values, such as ';' or tab; by default as the header shows."
        ),
        Field(
            "Between values",
            {"": "as the header shows", ",": "comma", ";": "semicolon", "tab": "tab", "|": "vertical bar"},
        ),
    ] = None,
    decimal: Annotated[
        Text,
        _text(metavar="MARK", help="Decimal mark, . or ','; by default as public columns show."),
        Field("Decimal mark", {"": "as the public columns show", ".": "point: 1.5", ",": "comma: 1,5"}),
    ] = None,
    thousands: Annotated[
        Text,
        _text(
            metavar="MARK", help="Mark between thousands, . or ',' or space; by default as public columns show."
        ),
        Field(
            "Between thousands",
            {
                "": "as the public columns show",
                ",": "comma: 1,000",
                ".": "point: 1.000",
                "space": "space: 1 000",
                "'": "apostrophe: 1'000",
            },
        ),
    ] = None,
    encoding: Annotated[
        Text,
        _text(help="Such as cp1252 or utf-16; by default as a byte-order mark shows, else utf-8."),
        Field(
            "Encoding",
            {
                "": "as the file shows, or UTF-8",
                "cp1252": "Western Europe, Windows (cp1252)",
                "cp1250": "Central Europe, Windows (cp1250)",
                "cp1251": "Cyrillic, Windows (cp1251)",
                "iso8859-1": "Latin 1 (ISO 8859-1)",
                "mac-roman": "old Mac (mac-roman)",
                **{name: name.upper() for name in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")},
            },
        ),
    ] = None,
    na: Annotated[
        Words,
        _text(metavar="WORD", help="A word for missing values beside the usual ones; may be repeated."),
        Field("Words for missing values"),
    ] = (),
    header: Annotated[
        bool,
        _header(help="The first row names the columns, though names read as values (years)."),
        Field("The first row names the columns"),
    ] = False,
    skip: Annotated[
        int,
        _header(help="Title lines above the header, or rows of a sheet, that are not read, such as 3."),
        Field("Lines above the header"),
    ] = 0,
    skip_last: Annotated[
        int | None,
        _header(
            help="Totals below the table, such as 1: lines, or rows of a sheet, that are not read, for a total "
            "releases every label again. 0 keeps a last row that looks like one."
        ),
        Field("Totals below the table"),
    ] = None,
    sheet: Annotated[
        Text,
        Option(help="Which sheet; by default the only one.", rich_help_panel="Excel"),
        Field("Sheet"),
    ] = None,
) -> Dialect:
    """Return how a table is written."""
    return Dialect(**locals())


def open_ledger(
    ledger: Annotated[
        File,
        Option(
            help="File that records all charges for these labels, and refuses more than its limit; created if "
            "new.",
            rich_help_panel="Budget",
        ),
        Field("Ledger file"),
    ] = None,
    limit: Annotated[
        float | None,
        Option(help="The limit of ε, for a new ledger.", rich_help_panel="Budget"),
        Field("Limit of the ledger (ε)"),
    ] = None,
    unit: Annotated[
        Text,
        Option(
            metavar="label|person",
            help="The limit of a new ledger is for a label, or for all labels of a person.",
            rich_help_panel="Budget",
        ),
    ] = None,
    segments: Annotated[
        Text, Option(help="The name of a new ledger's segments, such as night.", rich_help_panel="Budget")
    ] = None,
) -> Ledger:
    """Return the ledger to charge; a new file is created with its first charge, so that a refusal leaves none."""
    budget = None if limit is None else Budget(parse_positive(limit, "limit"))
    if ledger is not None:
        return Ledger.prepare(ledger, limit=budget, unit=unit, segments=segments)  # type: ignore[arg-type]
    if budget is not None:
        raise ParameterError(Setting("limit"), " needs a file to keep it: add ", Setting("ledger", "FILE"))
    return Ledger()


def collect_release_options(
    bounds: Bounds,
    epsilon: Annotated[
        Epsilon,
        Option(
            "--epsilon",
            "-e",
            help="The whole privacy budget of a row; a smaller ε is more private. A person's rows each cost it.",
        ),
        Field("Privacy budget (ε)"),
    ],
    missing: Missing = "error",
    *,
    format: Format = None,
    force: Force = False,
    rows_per_person: RowsPerPerson = 1,
    segment: Segment = None,
    segment_by: SegmentBy = None,
    id: RowId = None,
    person: Person = None,
    most_rows_per_person: MostRows = None,
    intended_use: Annotated[
        Statement | None,
        _record(help="Intended use of the release: on the card and in the ledger."),
        Field("Intended use"),
    ] = None,
    recipient: Annotated[
        Statement | None,
        _record(help="Who gets it: on the card and in the ledger."),
        Field("Who gets it"),
    ] = None,
    bounds_reason: Annotated[
        Statement | None,
        _record(help="How the bounds were chosen without looking at the labels: on the card and in the ledger."),
        Field("Why these bounds"),
    ] = None,
    dialect: DialectOptions,
) -> Data:
    """Return the arguments that all functions take which release from a private table."""
    return locals()


def collect_columns(features: Features = (), drop: Drop = (), categories: Categories = ()) -> Data:
    """Return the arguments that name columns to learn from."""
    return locals()


ColumnOptions = Annotated[Any, collect_columns]
LedgerOptions = Annotated[Ledger, open_ledger]
DialectOptions = Annotated[Dialect, read_dialect]
ReleaseOptions = Annotated[Any, collect_release_options]
"""Annotations of a parameter that the options of a function make."""

RECORD = ("intended_use", "recipient", "bounds_reason")
"""Options for statements of the owner."""

# ---- from texts to arguments --------------------------------------------------------------------------

_READERS: dict[Any, Callable[[Any, str], Any]] = {
    int: parse_count,
    float: parse_amount,
    Path: lambda text, _: Path(text),
    Epsilon: lambda text, name: Epsilon(parse_amount(text, name), name),
    Statement: parse_statement,
    Names: lambda text, _: split_names(text),
    Words: lambda text, _: split_names(text),
    Sequence[float]: lambda text, name: [parse_amount(number, name) for number in split_names(text)],
    list[Path]: lambda texts, _: [Path(text) for text in texts],
}
"""Functions from text to a value of each type. Texts stay as they are."""

METAVARS = {
    **{bool: "", int: "N", Epsilon: "ε", float: "ε", Path: "FILE", str: "NAME"},
    **{Statement: "TEXT", Names: "COLUMNS", LabelBounds: "LOW HIGH"},
}
"""Placeholders in help, by type."""

TYPED = {bool: bool, LabelBounds: list[str], Words: list[str], Formulas: list[str], list[Path]: list[str]}
"""Types that Typer hands over where an option is not one text."""


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option: a parameter that is declared for Typer.

    Attributes
    ----------
    name : str
    default : object
        `inspect.Parameter.empty` where the option must be given.
    type : type
        Of the value.
    typer : OptionInfo or ArgumentInfo of Typer
    field : Field
    """

    name: str
    default: Any
    type: Any
    typer: Any
    field: Field

    @classmethod
    def of(cls, parameter: Parameter) -> CommandOption:
        """Read the annotation of a parameter."""
        kind, info, *fields = get_args(parameter.annotation)
        kind = get_args(kind)[0] if NoneType in get_args(kind) else kind
        return cls(parameter.name, parameter.default, kind, info, *fields or [Field()])

    @property
    def flag(self) -> str:
        """The first flag on the command line; empty for a positional argument."""
        if isinstance(self.typer, type(Argument())):
            return ""
        flag = self.typer.default  # of ``Option("--out", "-o")``
        return flag if isinstance(flag, str) else f"--{self.name.replace('_', '-')}"

    def read(self, typed: Any, decimals: str = ".,") -> Any:
        """Return the value of one text, or of several where the type asks for them.

        Parameters
        ----------
        typed : str, bool, or sequence of str
        decimals : str
            The decimal marks that bounds may have.
        """
        if self.type is bool:
            return bool(typed) != self.default  # a flag turns its default round
        if self.type is LabelBounds:
            return self._bounds(typed, decimals)
        read = _READERS.get(self.type)
        return typed if read is None else read(typed, self.name)

    def _bounds(self, typed: Any, decimals: str) -> Any:
        """Return the bounds of a pair of texts, or of each of several pairs."""
        if isinstance(typed[0], str):
            return LabelBounds([parse_figure(text, self.name, decimals) for text in typed])
        pairs = [self._bounds(pair, decimals) for pair in typed]
        return pairs[0] if len(pairs) == 1 else pairs


def parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    """Yield the parameters of a function, those of a group in its place."""
    for parameter in signature(function, eval_str=True).parameters.values():
        group = _group(parameter)
        if group is None:
            yield parameter
        else:
            yield from parameters(group)


def arguments(function: Callable[..., Any], typed: Mapping[str, Any]) -> Data:
    """Return the arguments of a function from the typed text of each option, or None."""
    values = dict[str, Any]()
    for name, parameter in signature(function, eval_str=True).parameters.items():
        group = _group(parameter)
        if group is not None:
            value = group(**arguments(group, typed))
            values |= value if parameter.kind is Parameter.VAR_KEYWORD else {name: value}
        elif typed[name] in (None, []):
            values[name] = parameter.default
        else:
            values[name] = CommandOption.of(parameter).read(typed[name])
    return values


def _group(parameter: Parameter) -> FunctionType | None:
    """Return the function whose options make a parameter, if it is a group."""
    function = get_args(parameter.annotation)[1]
    return function if isinstance(function, FunctionType) else None


OPTIONS = {parameter.name: CommandOption.of(parameter) for parameter in parameters(collect_release_options)}
"""All options by name: the first declaration of each. Commands add theirs."""
