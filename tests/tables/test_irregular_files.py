"""Whatever is found at a path that labeldp opens is read, or refused at once: nothing hangs, nothing breaks."""

from pathlib import Path

import pytest

from helpers import posix_only, python
from sample_files import write_samples

TESTS = Path(__file__).parents[1]
PROGRAM = (TESTS / "tables" / "irregular.py").read_text(encoding="utf-8")


@pytest.mark.slow
@posix_only
def test_no_entry_point_hangs_or_breaks_at_what_is_not_a_regular_file(tmp_path):
    """A FIFO, a device, a link that loops or dangles, a folder: all in one process, whose imports take longest."""
    (tmp_path / "samples").mkdir()
    samples = write_samples(tmp_path / "samples")
    (tmp_path / "work").mkdir()
    done = python(PROGRAM, samples, tmp_path / "work", check=False, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if not line.startswith(("start ", "fine "))]
    assert (lines, done.returncode) == ([], 0), done.stderr
