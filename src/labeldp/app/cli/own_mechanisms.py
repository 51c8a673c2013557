"""Mechanisms of one's own, named by whoever types the command and never by a card."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from labeldp._atomic import regular_status
from labeldp.errors import ParameterError, Setting


def import_modules(names: Iterable[str]) -> None:
    """Import modules by name, as Python finds them, or by the path of a file that ends in .py.

    The current folder is not searched: a folder that somebody sent may hold modules of any name.
    """
    for name in names:
        try:
            _import_file(Path(name)) if name.endswith(".py") else import_module(name)
        except (Exception, SystemExit) as error:  # whatever a module does when it runs
            raise ParameterError(Setting("modules", name), f": {type(error).__name__}: {error}") from None


def _import_file(path: Path) -> ModuleType:
    regular_status(path)
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or path.stem in sys.modules:
        raise ImportError("there is a module of this name already")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module
