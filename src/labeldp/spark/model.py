"""`fit_model` on a DataFrame."""

from typing import Any


def fit_model(*a: Any, **k: Any) -> Any:
    raise NotImplementedError
