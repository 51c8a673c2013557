"""What a package index and an installer read of this project is true."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
URLS = PROJECT["project"]["urls"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
LINK = re.compile(r"""\]\(([^)\s]*)|\b(?:src|href)=["']([^"']*)""")


def links(text):
    return ["".join(parts) for parts in LINK.findall(text)]


def long_description():
    """Return README as the package index gets it."""
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text


def test_every_link_and_picture_of_readme_works_on_a_package_index():
    before, after = links((ROOT / "README.md").read_text(encoding="utf-8")), links(long_description())
    inside = [link for link in before if not re.match("https?://|#", link)]
    assert inside
    for link in inside:
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        if path.startswith("docs/") and path.endswith(".md"):  # a page of the site, which shows more than the file
            page = path.removeprefix("docs/").removesuffix(".md") + ".html"
            assert URLS["Documentation"] + page + (f"#{anchor}" if anchor else "") in after, link
        else:
            assert any(made.startswith(URLS["Repository"]) and made.endswith(f"/{link}") for made in after), link
    assert [link for link in after if not re.match("https://|#", link)] == []


def test_every_address_is_one_of_two_places():
    homes = (URLS["Repository"], URLS["Documentation"])
    assert all(url.startswith(homes) for url in URLS.values())
    for name in ("README.md", "CITATION.cff", "SECURITY.md", "pyproject.toml"):
        ours = re.findall(r"https://[^\s)\"'<>`]*labeldp[^\s)\"'<>`]*", (ROOT / name).read_text(encoding="utf-8"))
        foreign = re.compile(r"https://(img\.shields\.io/pypi/|pypi\.org/project/)")
        assert [url for url in ours if not url.startswith(homes) and not foreign.match(url)] == [], name


def test_every_requirement_has_a_lower_bound():
    groups = [each for group in PROJECT["dependency-groups"].values() for each in group if isinstance(each, str)]
    extras = [each for extra in EXTRAS.values() for each in extra if not each.startswith("labeldp[")]
    for requirement in [*PROJECT["project"]["dependencies"], *extras, *groups]:
        assert ">=" in requirement, requirement


def test_importing_the_library_imports_no_extra():
    packages = {re.match("[a-z0-9]+", each)[0] for extra in EXTRAS.values() for each in extra} - {"labeldp"}
    assert {"pyarrow", "matplotlib", "pyspark", "starlette"} <= packages
    packages |= {"jax", "reproduction"}
    code = "import sys, labeldp, labeldp.app.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert packages & set(done.stdout.split()) == set()


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_every_python_that_is_declared_is_tested_by_the_workflow(version):
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]
    assert f'"{version}"' in (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
