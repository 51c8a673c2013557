"""``python -m reproduction``."""

import signal
import sys

if __name__ == "__main__":  # worker processes import this module, and need none of it
    try:
        from reproduction.cli import app
    except ModuleNotFoundError as error:
        sys.exit(
            f'{error.name} is not installed: run pip install --editable ".[files,plots]" --group reproduction'
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops like Ctrl-C
    app(prog_name="python -m reproduction")
