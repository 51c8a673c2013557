"""Formulas such as ``schooling + age**2 + C(region, ref="north")``: which columns a regression has.

The grammar is a list of names, powers, categories and products. Nothing in it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labeldp._values import Array
from labeldp.errors import DataError, ParameterError, Setting
from labeldp.release.names import nearest, same_name

MAX_LEVELS = 1000
"""Of a category: a column that names every row is none."""

_NAME = r"`[^`]+`|[^\W\d]\w*"
_FACTOR = re.compile(
    rf"""\s*(?:
        C\(\s*(?P<category>{_NAME})\s*(?:,\s*ref\s*=\s*(?P<reference>"[^"]*"|'[^']*'|[\w.]+)\s*)?\)
        | (?P<name>{_NAME}) \s* (?:\*\*\s*(?P<power>[234])\b)?
    )\s*""",
    re.VERBOSE,
)
_HINT = (
    'write a sum of terms, such as age + age**2 + C(region, ref="north") + age:rooms + `unit price`, without y '
    "and without an intercept; for functions such as log add a column to the table"
)


@dataclass(frozen=True, slots=True)
class Factor:
    """One column of the table in a term of a formula, or in a coefficient.

    Attributes
    ----------
    column : str
    power : int
        Of a number.
    category : bool
        Whether it was written as ``C(column)``.
    level : str, optional
        Of a category: in a formula the level that others are compared with, in a coefficient the one that is.
    """

    column: str
    power: int = 1
    category: bool = False
    level: str | None = None

    def __str__(self) -> str:
        if self.level is not None:
            return f"{self.column}[{self.level}]"
        return self.column if self.power == 1 else f"{self.column}**{self.power}"


Term = tuple[Factor, ...]
"""Factors that are multiplied with each other."""


@dataclass(frozen=True, slots=True)
class Formula:
    """The right-hand side of a regression: before `fit` as it was written, then one term for each coefficient.

    Attributes
    ----------
    terms : tuple of terms
    levels : dict
        Of each category, that of reference first; empty before `fit`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"age": [20, 30, 50], "region": ["east", "west", "west"]})
    >>> coefficients = Formula.parse("age + C(region) + age:C(region)").fit(people)
    >>> coefficients.names
    ['age', 'region[west]', 'age:region[west]']
    >>> coefficients.transform(people)
    array([[20.,  0.,  0.],
           [30.,  1., 30.],
           [50.,  1., 50.]])
    """

    terms: tuple[Term, ...]
    levels: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def plain(cls, names: Sequence[str]) -> Formula:
        """Return a coefficient for each of some columns of numbers."""
        return cls(tuple((Factor(name),) for name in names))

    @classmethod
    def parse(cls, text: str, label: str | None = None) -> Formula:
        """Read a formula; the label must not be in it."""
        terms: list[Term] = []
        position, mark = 0, "+"
        while mark:
            match = _FACTOR.match(text, position)
            if match is None or text[match.end() : match.end() + 1] not in ("", "+", ":"):
                raise _unreadable(text, position)
            name = (match["category"] or match["name"]).strip("`")
            reference = None if match["reference"] is None else match["reference"].strip("\"'")
            factor = Factor(name, int(match["power"] or 1), match["category"] is not None, reference)
            if label is not None and same_name(name, label):
                raise _error(f"must not use the label {label!r}: it is private")
            terms = [*terms, (factor,)] if mark == "+" else [*terms[:-1], (*terms[-1], factor)]
            position, mark = match.end() + 1, text[match.end() : match.end() + 1]
        alone = {term[0].column for term in terms if len(term) == 1 and term[0].power == 1}
        for term in terms:
            missing = {factor.column: "" for factor in term if factor.column not in alone}
            if len(term) > 1 and missing:
                product = ":".join(factor.column for factor in term)
                added = " and ".join(map(repr, missing))
                raise _error(f"has the product {product} and not each of its columns by itself: add {added}")
        return cls(tuple(terms))

    @property
    def factors(self) -> list[Factor]:
        """The factors of all terms, in order."""
        return [factor for term in self.terms for factor in term]

    @property
    def names(self) -> list[str]:
        """The name of each term."""
        return [":".join(map(str, term)) for term in self.terms]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that it uses, in order."""
        return list(dict.fromkeys(factor.column for factor in self.factors))

    @property
    def categories(self) -> list[str]:
        """The columns that were written as ``C(column)``, in order."""
        return list(dict.fromkeys(factor.column for factor in self.factors if factor.category))

    def refuse_missing(self, names: Sequence[str]) -> None:
        """Refuse a table with these columns if the formula uses another."""
        for name in self.columns:
            if name not in names:
                near = nearest(name, names)
                raise _error(f"uses the column {name!r}, which is not there" + (f": {near!r}?" if near else ""))

    def fit(self, table: Any) -> Formula:
        """Return it with a term for each coefficient, on an Arrow table of public columns that has all levels."""
        self.refuse_missing(table.column_names)
        pairs = {(factor.column, factor.level) for factor in self.factors if factor.level is not None}
        references = dict(pairs)
        if len(references) < len(pairs):
            raise _error("names two reference levels of one column")
        texts = [name for name in self.columns if not _is_number(table.column(name).type)]
        levels = {name: _levels(table, name, references.get(name)) for name in [*self.categories, *texts]}
        result = Formula(tuple(each for term in self.terms for each in _expand(term, levels)), levels)
        if len(set(result.names)) < len(result.terms):
            raise _error("gives two coefficients one name: leave out a term, or rename a column or a level")
        return result

    def transform(self, table: Any) -> Array:
        """Return the values of its terms on an Arrow table, rows × coefficients."""
        values: dict[str, Array] = {}
        for name in self.columns:
            if name not in table.column_names:
                raise DataError(f"the column {name!r} is missing")
            values[name] = (_texts if name in self.levels else _numbers)(table, name)
            if new := name in self.levels and set(values[name]) - set(self.levels[name]):
                raise DataError(f"the column {name!r} has a level that the regression does not know: {min(new)!r}")
        result = np.ones((table.num_rows, len(self.terms)))
        for k, term in enumerate(self.terms):
            for factor in term:
                value = values[factor.column]
                result[:, k] *= value**factor.power if factor.level is None else value == factor.level
        return result


def _expand(term: Term, levels: dict[str, list[str]]) -> list[Term]:
    """Return a term for each coefficient: a category has one for each level but its reference."""
    terms: list[Term] = [()]
    for factor in term:
        name, parts = factor.column, [factor]
        if name in levels:
            if factor.power > 1:
                raise _error(f"has a power of {name!r}, which is not a number")
            parts = [Factor(name, level=level) for level in levels[name][1:]]
        terms = [(*before, part) for before in terms for part in parts]
    return terms


def _levels(table: Any, name: str, reference: str | None) -> list[str]:
    """Return the levels of a category, its reference first."""
    levels = sorted(set(_texts(table, name)), key=_level_key)
    if len(levels) > MAX_LEVELS:
        raise DataError(f"the column {name!r} has more than {MAX_LEVELS} levels: leave it out, or join some")
    if reference not in (None, *levels):
        raise _error(f"compares with {reference!r}, which is not a level of {name!r}: {', '.join(levels[:8])}")
    return levels if reference is None else [reference, *(level for level in levels if level != reference)]


def _level_key(level: str) -> tuple[bool, float, str]:
    """Order levels that are numbers by value, before others."""
    try:
        return False, float(level), level
    except ValueError:
        return True, 0.0, level


def _is_number(kind: Any) -> bool:
    return str(kind) == "bool" or str(kind).startswith(("int", "uint", "float", "double", "halffloat", "decimal"))


def _numbers(table: Any, name: str) -> Array:
    """Return a column of numbers; what is missing is not a number."""
    column = table.column(name)
    if not _is_number(column.type):
        raise DataError(f"the column {name!r} is not numeric: leave it out, or write C({name}) in a formula")
    return np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)


def _texts(table: Any, name: str) -> Array:
    column = table.column(name)
    if column.null_count:
        raise DataError(f"the column {name!r} has missing values: leave out those rows, or fill them")
    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in column.to_pylist()]
    return np.array(texts, dtype=object)


def _unreadable(text: str, position: int) -> ParameterError:
    """Return what is wrong with a formula that cannot be read from a position on."""
    left = _FACTOR.match(text, position)
    right = None if left is None or text[left.end()] != "*" else _FACTOR.match(text, left.end() + 1)
    if left is not None and right is not None:
        a, b = left[0].strip(), right[0].strip()
        return _error(f"cannot have {a} * {b}: write {a} + {b} + {a}:{b}")
    return _error(f"cannot be read from {text[position:].strip()[:20]!r} on: {_HINT}")


def _error(problem: str) -> ParameterError:
    return ParameterError(Setting("on"), f" {problem}")
