"""Formulas such as ``schooling + age**2 + C(region, ref="north")``, which state the columns of a regression.

A formula is a sum of names, powers, categories and products. Nothing in it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from labeldp._values import Array
from labeldp.errors import DataError, ParameterError, Setting
from labeldp.inference.design import MAX_NAME
from labeldp.release.names import nearest, same_name
from labeldp.tables.column_encoders import one_array
from labeldp.tables.frames import as_table, frame_names, row_count, select_columns

MAX_LEVELS = 1000
"""The largest number of levels of a category; identifiers have more."""

CONSTANT = "1"
"""The formula of a constant alone, whose coefficient is the mean."""

_NAME = r"`[^`]+`|[^\W\d]\w*"
_FACTOR = re.compile(
    rf"""\s*(?:
        C\(\s*(?P<category>{_NAME})\s*(?:,\s*ref\s*=\s*(?P<reference>"[^"]*"|'[^']*'|[\w.]+)\s*)?\)
        | (?P<function>log|sqrt)\(\s*(?P<argument>{_NAME})\s*\)
        | (?P<name>{_NAME}) \s* (?:\*\*\s*(?P<power>[234])\b)?
    )\s*(?P<sign>[+:]|\*(?!\*)|\Z)""",
    re.VERBOSE,
)
_LABEL = re.compile(rf"\s*(?P<label>{_NAME})\s*~")
_HINT = (
    'write a sum of terms, such as age + age**2 + log(income) + C(region, ref="north") + age:rooms + age*urban + '
    "`unit price`, without an intercept, or 1 for the mean alone; for other functions add a column to the table"
)
_LABEL_HINT = (
    "only the name of the label may stand before ~, once; for its logarithm pass the logarithm as the label, with "
    "the bounds of the logarithm"
)
_NUMERIC = re.compile("bool|u?int|float|double|halffloat|decimal")
_ANY = "C()"
"""The level of a category in a formula that was not fitted."""

_FUNCTIONS = {"log": (np.log, 5e-324, "above 0"), "sqrt": (np.sqrt, 0.0, "of 0 or more")}
"""Functions of a column, with the least value that they take, as a number and in words."""


class Factor(NamedTuple):
    """A column of the table in a term.

    Attributes
    ----------
    column : str
    power : int
        The exponent of a column of numbers.
    level : str, optional
        The level of a category for which the factor is 1; of a category before `Formula.fit`, a mark.
    function : {"log", "sqrt"}, optional
        The function of a column of numbers.
    """

    column: str
    power: int = 1
    level: str | None = None
    function: str | None = None

    def __str__(self) -> str:
        if self.level is not None:
            return f"C({self.column})" if self.level is _ANY else f"{self.column}[{self.level}]"
        if self.function is not None:
            return f"{self.function}({self.column})"
        return self.column if self.power == 1 else f"{self.column}**{self.power}"

    def apply(self, values: Array) -> Array:
        """Return the factor of a column's values."""
        if self.level is not None:
            return np.asarray(values == self.level, dtype=np.float64)
        if self.function is None:
            return values**self.power
        function, minimum, limit = _FUNCTIONS[self.function]
        smallest = values.min(initial=1.0)
        if smallest < minimum:
            raise DataError(f"{self} needs values {limit}, and {self.column!r} has {smallest:g}")
        return function(values)


Term = tuple[Factor, ...]
"""Factors that are multiplied with each other."""

Levels = dict[str, list[str]]
"""The levels of categories, the reference level first."""


@dataclass(frozen=True, slots=True)
class Formula:
    """The right-hand side of a regression. After `fit` it has a term for each coefficient.

    Attributes
    ----------
    terms : tuple of terms
    levels : dict
        The levels of each category, the reference level first. Before `fit` it has the columns that are written as
        ``C(column)``, and their reference levels if they are given.

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
    levels: Levels = field(default_factory=dict)

    @classmethod
    def plain(cls, names: Sequence[str]) -> Formula:
        """Return the formula with a coefficient for each of some columns of numbers."""
        return cls(tuple((Factor(name),) for name in names))

    @classmethod
    def parse(cls, text: str, label: str | None = None) -> Formula:
        """Read a formula; it must not use the label, but for ``label ~`` in front."""
        groups: list[list[Term]] = []
        references: list[tuple[str, list[str]]] = []
        text = _without_label(text, label)
        if text.strip() == CONSTANT:
            return cls(())
        for sign, match in _matches(text):
            name = (match["category"] or match["name"] or match["argument"]).strip("`")
            if label is not None and same_name(name, label):
                raise _error(f"must not use the label {label!r}: it is private")
            if match["category"]:
                references.append((name, [match["reference"].strip("\"'")] if match["reference"] else []))
            level = _ANY if match["category"] else None
            term = (Factor(name, int(match["power"] or 1), level, match["function"]),)
            if sign == "+":
                groups.append([term])
            elif sign == "*":
                groups[-1].append(term)
            else:
                groups[-1][-1] += term
        terms = _expanded(groups)
        _refuse_repeated(terms)
        _refuse_two_kinds(terms)
        _refuse_products_alone(terms)
        return cls(tuple(terms), _join_levels(references))

    @classmethod
    def joined(cls, formulas: Sequence[Formula]) -> Formula:
        """Return the formula with the terms of several formulas, each once."""
        terms = dict.fromkeys(term for formula in formulas for term in formula.terms)
        _refuse_two_kinds(terms)
        return cls(tuple(terms), _join_levels(item for formula in formulas for item in formula.levels.items()))

    @property
    def names(self) -> list[str]:
        """The name of each term."""
        return [":".join(map(str, term)) for term in self.terms]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that the formula uses, in order."""
        return list(dict.fromkeys(factor.column for term in self.terms for factor in term))

    def fit(self, frame: Any) -> Formula:
        """Return the formula with a term for each coefficient, for the levels in a data frame."""
        table = self.select(frame)
        levels = {
            name: _levels(table, name, self.levels.get(name, []))
            for name in self.columns
            if name in self.levels or not _NUMERIC.match(str(table.column(name).type))
        }
        return self._coded(levels)

    def _coded(self, levels: Levels) -> Formula:
        """Return the formula with a term for each coefficient."""
        terms = [coded for term in self.terms for coded in product(*(_code(factor, levels) for factor in term))]
        result = Formula(tuple(terms), levels)
        _refuse_repeated(result.names)
        return result

    def subset(self, formula: Formula) -> Formula:
        """Return another formula coded with the levels of this one, which was fitted."""
        for name, reference in formula.levels.items():
            if reference and reference != self.levels.get(name, reference)[:1]:
                raise _error(
                    f"compares {name!r} with {reference[0]!r}, and the release with {self.levels[name][0]!r}"
                )
        return formula._coded({name: self.levels[name] for name in formula.columns if name in self.levels})

    def transform(self, frame: Any, changes: Mapping[str, Array] | None = None) -> Array:
        """Return the values of the terms in a data frame, rows × coefficients.

        Parameters
        ----------
        frame : data frame
        changes : dict, optional
            Other values of columns.
        """
        table = self.select(frame)
        values = {name: self._values(table, name) for name in self.columns} | dict(changes or {})
        result = np.ones((row_count(frame), len(self.terms)))
        for k, term in enumerate(self.terms):
            for factor in term:
                result[:, k] *= factor.apply(values[factor.column])
        return result

    def _values(self, table: Any, name: str) -> Array:
        """Return a column of numbers, or the levels of a category as text."""
        if name not in self.levels:
            return as_numbers(table, name)
        texts = _texts(table, name)
        if new := set(texts) - set(self.levels[name]):
            raise DataError(f"the column {name!r} has a level that the regression does not know: {min(new)!r}")
        return texts

    def select(self, frame: Any) -> Any:
        """Return the columns that the formula uses as an Arrow table."""
        names = frame_names(frame)
        for name in self.columns:
            if name not in names:
                similar = nearest(name, names)
                raise DataError(f"X has no column {name!r}" + (f": {similar!r}?" if similar else ""))
        return as_table(select_columns(frame, self.columns))


def _matches(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the factors of a formula, with the sign before each."""
    position, sign = 0, "+"
    while sign:
        match = _FACTOR.match(text, position)
        if match is None:
            hint = _LABEL_HINT if "~" in text[position:] else _HINT
            raise _error(f"cannot be read, beginning at {text[position:].strip()[:20]!r}: {hint}")
        yield sign, match
        position, sign = match.end(), match["sign"]


def _without_label(text: str, label: str | None) -> str:
    """Return a formula without ``label ~`` in front."""
    match = _LABEL.match(text)
    if match is None or label is None:
        return text
    if not same_name(match["label"].strip("`"), label):
        raise _error(f"names the label {match['label']!r}, and it is {label!r}")
    return text[match.end() :]


def _join_levels(items: Iterable[tuple[str, list[str]]]) -> Levels:
    """Return the reference levels of categories; a category with two is refused."""
    levels: Levels = {}
    for name, reference in items:
        levels[name] = levels.get(name) or reference
        if reference not in ([], levels[name]):
            raise _error(f"names two reference levels of {name!r}")
    return levels


def _expanded(groups: Sequence[Sequence[Term]]) -> list[Term]:
    """Return the terms of groups: those that ``*`` joins stand for themselves and all their products."""
    terms: list[Term] = []
    for group in groups:
        for size in range(1, len(group) + 1):
            joined = [sum(members, ()) for members in combinations(group, size)]
            terms += [term for term in joined if len(group) == 1 or term not in terms]
    return terms


def _refuse_repeated(names: Sequence[object]) -> None:
    """Refuse a term that is there twice, and two terms of one name."""
    if len(set(names)) < len(names):
        raise _error("gives two coefficients one name: leave out a term, or rename a column or a level")


def _refuse_two_kinds(terms: Iterable[Term]) -> None:
    """Refuse a column that is a category in one term and not in another: a release has it as one of them."""
    factors = [factor for term in terms for factor in term]
    categories = {factor.column for factor in factors if factor.level is not None}
    for factor in factors:
        if factor.level is None and factor.column in categories:
            written = f"C({factor.column})"
            raise _error(
                f"has {factor} and {written}, and a release has one of them: write {written} in all terms"
            )


def _refuse_products_alone(terms: Sequence[Term]) -> None:
    """Refuse a product with a column that is not a term by itself."""
    single = {str(term[0]) for term in terms if len(term) == 1}
    for factor in (factor for term in terms if len(term) > 1 for factor in term):
        name = str(factor._replace(power=1))
        if name not in single:
            raise _error(f"has a product with {name!r} and not this column by itself: add {name!r}")


def _code(factor: Factor, levels: Levels) -> list[Factor]:
    """Return a factor for each coefficient: for a category, one for each level but the reference level."""
    if factor.column not in levels:
        return [factor]
    if factor.power > 1 or factor.function is not None:
        raise _error(f"has {factor}, and {factor.column!r} is not a number")
    return [factor._replace(level=level) for level in levels[factor.column][1:]]


def _levels(table: Any, name: str, reference: list[str]) -> list[str]:
    """Return the levels of a category, its reference level first."""
    levels = sorted(set(_texts(table, name)), key=_level_key)
    if len(levels) > MAX_LEVELS:
        raise DataError(f"the column {name!r} has more than {MAX_LEVELS} levels: leave it out, or join some")
    if longest := max((level for level in levels if len(level) > MAX_NAME), default=""):
        raise DataError(f"the column {name!r} has a level of more than {MAX_NAME} characters: {longest[:20]!r}…")
    if not {*reference} <= {*levels}:
        raise _error(f"compares with {reference[0]!r}, which is not a level of {name!r}: {', '.join(levels[:8])}")
    return reference + [level for level in levels if level not in reference]


def _level_key(level: str) -> tuple[bool, float, str]:
    """Order levels that are numbers by value, before others."""
    try:
        return False, float(level), level
    except ValueError:
        return True, 0.0, level


def as_numbers(table: Any, name: str) -> Array:
    """Return a column of numbers; missing values become NaN."""
    column = table.column(name)
    if not _NUMERIC.match(str(column.type)):
        written = name if name.isidentifier() else f"`{name}`"
        raise DataError(f"the column {name!r} is not numeric: leave it out, or write C({written}) in a formula")
    return np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)


def _texts(table: Any, name: str) -> Array:
    """Return a column as text."""
    column = table.column(name)
    if column.null_count:
        raise DataError(f"the column {name!r} has missing values: leave out those rows, or fill them")
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in one_array(column).to_pylist()]
    return np.array(texts, dtype=object)


def _error(problem: str) -> ParameterError:
    return ParameterError(Setting("on"), f" {problem}")
