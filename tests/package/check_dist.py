"""Checks the wheel and the sdist in `dist/`, and writes their hashes; run by `make dist`.

The same files, built once more in another way, are in the folder that is named: the bytes must be equal.
"""

from __future__ import annotations

import email
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

DIST = Path("dist")
NOT_SHIPPED = {".ci/run", ".pre-commit-config.yaml"}
LARGEST = 500_000
RELATIVE = re.compile(r"""\]\((?!https?://|\#)[^)]*\)|\b(?:src|href)=["'](?!https?://|\#)[^"']*""")


def check_bytes(again: Path) -> None:
    """The wheel made from the sdist and the one made from the tree are the same, and so are two sdists."""
    built = sorted(path.name for path in DIST.iterdir())
    assert built == sorted(path.name for path in again.iterdir())
    for name in built:
        assert (DIST / name).read_bytes() == (again / name).read_bytes(), f"{name} differs between two builds"


def check_sdist(path: Path) -> None:
    """The sdist has all that git keeps, tests and documents too, and nothing else."""
    with tarfile.open(path) as archive:
        members = [member for member in archive if not member.isdir()]
    names = {member.name.partition("/")[2] for member in members}
    kept = subprocess.run(["git", "ls-files"], capture_output=True, encoding="utf-8", check=True)  # noqa: S607
    expected = set(kept.stdout.splitlines()) - NOT_SHIPPED | {"PKG-INFO"}
    assert names == expected, f"too much or too little in the sdist: {sorted(names ^ expected)}"
    large = [member.name for member in members if member.size > LARGEST]
    assert not large, f"too large for an sdist: {large}"


def check_wheel(path: Path) -> None:
    """The wheel has the package alone, and its description no link that only works in the repository."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        described = next(name for name in names if name.endswith(".dist-info/METADATA"))
        text = email.message_from_bytes(archive.read(described)).get_payload()
    assert {name.partition("/")[0] for name in names} == {"labeldp", described.partition("/")[0]}
    assert "labeldp/py.typed" in names
    assert isinstance(text, str)
    relative = RELATIVE.findall(text)
    assert not relative, f"dead on a package index: {relative}"


def complete_sbom(path: Path) -> None:
    """Say which version the list of components is of: its tool reads pyproject.toml, where it is not written."""
    sbom = json.loads(path.read_text(encoding="utf-8"))
    version = next(DIST.glob("*.whl")).name.split("-")[1]
    sbom["metadata"]["component"] |= {"version": version, "purl": f"pkg:pypi/labeldp@{version}"}
    assert "file:" not in json.dumps(sbom), "the list of components names a folder of this machine"
    path.write_text(json.dumps(sbom, indent=2) + "\n", encoding="utf-8")


def write_hashes() -> None:
    """Write SHA256SUMS, which ``sha256sum --check`` reads."""
    lines = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    print("".join(lines), end="")


if __name__ == "__main__":
    if sys.argv[1:]:
        check_bytes(Path(sys.argv[1]))
        check_sdist(next(DIST.glob("*.tar.gz")))
        check_wheel(next(DIST.glob("*.whl")))
    else:
        complete_sbom(DIST / "sbom.cdx.json")
        write_hashes()
