"""Write the changelog's section of the version that a tag names; refuse a tag that is not the version.

``python .github/scripts/release_notes.py v0.2.0 --out build/notes.md``
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def package_version() -> str:
    """Return the version of the package, from its one source."""
    text = (ROOT / "src/labeldp/__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, flags=re.MULTILINE)[0]


def release_notes(changelog: str, version: str) -> str:
    """Return what a changelog says of a version, without its heading; exit if that is nothing, or has no date."""
    found = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[|\Z)",
        changelog,
        re.DOTALL | re.MULTILINE,
    )
    if found is None or not found[1].strip():
        sys.exit(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' with text: write it, then tag again")
    site = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Documentation"]
    return re.sub(r"\]\(docs/([^)#]+)\.md", rf"]({site}\1.html", found[1].strip()) + "\n"  # a release has no docs/


def main() -> None:
    """Check the tag, and write the notes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    version = package_version()
    if chosen.tag != f"v{version}":
        sys.exit(f"the tag is {chosen.tag}, and the version is {version}: tag v{version}, or change it first")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(release_notes(changelog, version), encoding="utf-8")


if __name__ == "__main__":
    main()
