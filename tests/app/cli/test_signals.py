"""A signal to end ends every command, wherever it waits: nothing is half written, and nothing is charged."""

import signal
import subprocess
import sys

import pytest

from command_line import files_in
from helpers import posix_only
from sample_files import write_samples

SWALLOWING = """
import time
from labeldp.app.cli.shell import exit_on_error
with exit_on_error():
    while True:
        try:
            print("waiting", flush=True)
            while True:
                time.sleep(0.1)
        except BaseException:
            pass
"""


@pytest.fixture
def started(tmp_path):
    """Start Python in a folder of samples; whatever is still running in the end is killed."""
    write_samples(tmp_path)
    processes = []

    def start(*words):
        pipes = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE)
        command = [sys.executable, *words]
        processes.append(subprocess.Popen(command, cwd=tmp_path, **pipes))  # noqa: S603
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def assert_ends(process, folder, before):
    """Send a signal to end; the process ends, and leaves its folder as it was."""
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=300)
    assert process.returncode == 130
    assert b"Traceback" not in process.stderr.read()
    assert files_in(folder) == before


@posix_only
def test_the_page_ends_and_leaves_nothing(started, tmp_path):
    before = files_in(tmp_path)
    process = started("-m", "labeldp.app.cli", "page", ".", "--no-open")
    assert b"The page of" in process.stderr.readline()
    assert_ends(process, tmp_path, before)


@posix_only
def test_a_second_signal_ends_what_swallowed_the_first(started):
    process = started("-c", SWALLOWING)
    for _ in range(2):
        assert process.stdout.readline() == b"waiting\n"
        process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == -signal.SIGTERM
