"""Lay out the sites of all versions in one folder, each with a list of all.

``python .github/scripts/lay_out_site.py BUILT ARCHIVES OUT``: BUILT is the site of main, ARCHIVES has the
``labeldp-VERSION-site.tar.gz`` of releases. OUT is the site of the newest release (of main before the first one;
never of a pre-release), so that addresses without a version lead there, with a folder for each release and
``latest`` for main.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOME = PROJECT["urls"]["Documentation"]
VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?")


def order(name: str) -> tuple[list[int], str, int]:
    """Return what sorts versions: 0.3.0rc9, 0.3.0rc10, 0.3.0, 0.10.0."""
    parts = VERSION.fullmatch(name)
    if parts is None:
        sys.exit(f"{name} is not a version such as 0.3.0 or 0.3.0rc1: rename its archive")
    return [int(number) for number in parts[1].split(".")], parts[2] or "release", int(parts[3] or 0)  # a b rc re


def lay_out(built: Path, archives: Path, out: Path) -> list[str]:
    """Fill the folder, and return the names of releases, newest first."""
    files = {path.name.removeprefix("labeldp-").removesuffix("-site.tar.gz"): path for path in archives.iterdir()}
    names = sorted(files, key=order, reverse=True)
    newest = next((name for name in names if name.replace(".", "").isdigit()), None)
    for name in names:
        with tarfile.open(files[name]) as archive:
            archive.extractall(out / name, filter="data")
    shutil.copytree(built, out / "latest")
    shutil.copytree(out / newest if newest else built, out, dirs_exist_ok=True)
    listed = [
        {"name": name, "version": name, "url": f"{HOME}{name}/", "preferred": name == newest}
        for name in ("latest", *names)
    ]
    for folder in (out, out / "latest", *(out / name for name in names)):
        (folder / "_static/versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (out / ".nojekyll").touch()
    return names


if __name__ == "__main__":
    print("releases:", *lay_out(*map(Path, sys.argv[1:])))
