"""The paper's experiments, with mechanisms that are really private: ``python -m reproduction --help``.

Uses the library as any user would and is not part of its wheel. It needs the dependency group ``reproduction``:
``pip install --editable ".[files,plots]" --group reproduction`` in the repository.
docs/reproduction.md has the method and the results.
"""
