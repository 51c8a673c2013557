"""Columns of words: one dictionary for the whole table, whatever files, row groups and batches have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labeldp._arrow import arrow

__all__ = ["Words"]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a dictionary column.

    They are in the order in which rows use them first: the order of an input's dictionary, and which words are in
    it though no row uses them, may show how its rows were cut. An ordered dictionary is kept as it is, if all
    pieces have the same, and else is not ordered any more.

    Attributes
    ----------
    kind : Arrow type
        The column's type: a dictionary, or that of the words where Arrow cannot look such words up.
    words : Arrow array or None
    """

    kind: Any
    words: Any

    @classmethod
    def of(cls, columns: Iterable[Any], kind: Any) -> Words:
        """Return the words in all pieces of a column.

        Examples
        --------
        >>> import pyarrow as pa
        >>> pieces = [pa.DictionaryArray.from_arrays([1, 0], ["a", "b"]), pa.array(["c", "b"]).dictionary_encode()]
        >>> Words.of(pieces, pieces[0].type).words.to_pylist()
        ['b', 'a', 'c']
        """
        pa, pc = arrow().core, arrow().compute
        words = pa.nulls(0, kind.value_type)
        common = None  # the dictionary, as long as there is but one
        try:
            for column in columns:
                here = column
                if pa.types.is_dictionary(column.type):
                    common = column.dictionary if common is None else common
                    common = common if common.equals(column.dictionary) else pa.nulls(0)
                    here = column.dictionary.take(pc.unique(column.indices))
                words = pc.unique(pa.concat_arrays([words, here.cast(kind.value_type)])).drop_null()
            pc.index_in(words, value_set=words)
        except pa.ArrowNotImplementedError:
            return cls(kind.value_type, None)
        ordered = kind.ordered and common is not None and len(common) > 0
        words = common.cast(kind.value_type) if ordered and common is not None else words
        bits = kind.index_type.bit_width - pa.types.is_signed_integer(kind.index_type)
        fits = bits >= 31 or len(words) < 1 << bits
        return cls(pa.dictionary(kind.index_type if fits else pa.int32(), kind.value_type, ordered), words)

    def fitted(self, array: Any) -> Any:
        """Return a piece of the column, with these words as its dictionary."""
        pa, pc = arrow().core, arrow().compute
        if self.words is None:
            return array.cast(self.kind)
        if pa.types.is_dictionary(array.type) and array.dictionary.equals(self.words):
            places = array.indices
        else:
            places = pc.index_in(array.cast(self.words.type), value_set=self.words)
        return pa.DictionaryArray.from_arrays(
            places.cast(self.kind.index_type), self.words, ordered=self.kind.ordered
        )
