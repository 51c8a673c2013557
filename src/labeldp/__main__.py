"""``python -m labeldp``: the command line where no command is installed."""

from labeldp.app.cli import app

if __name__ == "__main__":
    app(prog_name="labeldp")
