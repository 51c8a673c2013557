"""Lay out the sites of all versions in one folder, each with a list of all.

``python .github/scripts/lay_out_site.py BUILT ARCHIVES OUT``: BUILT is the site of main, ARCHIVES has the
``labeldp-VERSION-site.tar.gz`` of releases. OUT is the site of the newest release (of main before the first one),
so that addresses without a version lead there, with a folder for each release and ``latest`` for main.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
from pathlib import Path

HOME = "https://labeldp.github.io/labeldp/"


def lay_out(built: Path, archives: Path, out: Path) -> list[str]:
    """Fill the folder, and return the names of releases, newest first."""
    files = {path.name.removeprefix("labeldp-").removesuffix("-site.tar.gz"): path for path in archives.iterdir()}
    names = sorted(files, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    for name in names:
        with tarfile.open(files[name]) as archive:
            archive.extractall(out / name, filter="data")
    shutil.copytree(built, out / "latest")
    shutil.copytree(out / names[0] if names else built, out, dirs_exist_ok=True)
    listed = [
        {"name": name, "version": name, "url": f"{HOME}{name}/", "preferred": name in names[:1]}
        for name in ("latest", *names)
    ]
    for folder in (out, out / "latest", *(out / name for name in names)):
        (folder / "_static/versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (out / ".nojekyll").touch()
    return names


if __name__ == "__main__":
    print("releases:", *lay_out(*map(Path, sys.argv[1:])))
