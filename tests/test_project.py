"""What the project's own files promise: workflows, changelog, citation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.readme import refreshed

import labeldp as ldp

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_pinned_actions_with_no_permission_and_no_secret_by_default_and_ends_in_time(path):
    workflow = path.read_text(encoding="utf-8")
    for action in re.findall(r"uses: (?!\./)(.*)", workflow):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action), action
    assert "\npermissions: {}\n" in workflow
    assert "\nconcurrency:\n" in workflow
    assert "secrets." not in workflow
    assert workflow.count("runs-on:") == workflow.count("timeout-minutes:")


def release_notes(tag, out):
    """Run the script that writes the notes of a release; return how it ended."""
    command = [sys.executable, ROOT / ".github/scripts/release_notes.py", tag, "--out", out]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def test_the_changelog_and_the_citation_describe_the_version(tmp_path):
    notes = tmp_path / "notes.md"
    assert release_notes(f"v{ldp.__version__}", notes).returncode == 0
    written = notes.read_text(encoding="utf-8")
    assert len(written) > 100
    assert re.findall(r"\]\((?!https://|#).*", written) == []  # beside a release there are no other files
    assert f"\nversion: {ldp.__version__}\n" in text("CITATION.cff")
    dates = re.findall(rf"^## \[{re.escape(ldp.__version__)}\] - (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    assert [f'date-released: "{date}"' in text("CITATION.cff") for date in dates] == [True]


def test_the_figures_of_the_readme_are_those_of_the_benchmarks():
    readme = text("README.md")
    assert readme == refreshed(readme), "run: python -m benchmarks.readme"
