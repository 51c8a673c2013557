"""Serve the form, and add reports to reports.csv: for a trial, or a small survey behind https.

python3 collector.py      # then open http://localhost:8000

It needs nothing but Python. What does not look like a report of this form is refused, and neither
addresses nor times are kept.
"""

import csv
import json
import math
import re
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
IN_REPOSITORY = HERE.parent.parent / "clients" / "javascript" / "labeldp.js"
FILES = {"/", "/index.html", "/style.css", "/survey.js", "/labeldp.js", "/offline.js"}
PUBLIC = {"age": ("23", "37", "52", "68"), "region": ("north", "east", "south", "west")}
PRIVATE = "salary"
CARD = re.compile("sha256:[0-9a-f]{64}")
MOST_BYTES = 2000

_one_at_a_time = threading.Lock()


def read_report(body: bytes) -> list[str]:
    """Return the fields of a report in the order of the table, or raise ValueError."""
    report = json.loads(body, parse_int=float)
    if not isinstance(report, dict) or set(report) != {*PUBLIC, PRIVATE, "card"}:
        raise ValueError("other fields than those of the form")
    value, card = report[PRIVATE], report["card"]
    is_known = all(report[name] in values for name, values in PUBLIC.items())
    is_number = isinstance(value, float) and math.isfinite(value)
    is_card = isinstance(card, str) and CARD.fullmatch(card)
    if not (is_known and is_number and is_card):
        raise ValueError("other values than those of the form")
    return [*(report[name] for name in PUBLIC), repr(value), card]


class Collector(SimpleHTTPRequestHandler):
    """The form's files, and the address that takes its reports."""

    timeout = 60  # seconds: a connection that sends nothing holds no thread for longer

    def __init__(self, *arguments, table: Path, **options):
        self.table = table
        super().__init__(*arguments, **options)

    def send_head(self):
        """Serve the files of the form, and no others."""
        if self.path.partition("?")[0] in FILES:
            return super().send_head()
        self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def translate_path(self, path):
        """Return the file of an address; the client may still be where the repository has it."""
        file = super().translate_path(path)
        is_client = path.partition("?")[0] == "/labeldp.js"
        return str(IN_REPOSITORY) if is_client and not Path(file).exists() else file

    def do_POST(self):
        """Add a report to the table."""
        try:
            size = int(self.headers.get("Content-Length", ""))
            if self.path != "/reports" or not 0 < size <= MOST_BYTES:
                raise ValueError("no report")
            if self.headers.get_content_type() != "application/json":  # other sites cannot send it
                raise ValueError("no JSON")
            fields = read_report(self.rfile.read(size))
        except (ValueError, RecursionError):
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        with _one_at_a_time, self.table.open("a", newline="", encoding="ascii") as file:
            writer = csv.writer(file, lineterminator="\n")
            if file.tell() == 0:
                writer.writerow([*PUBLIC, PRIVATE, "card"])
            writer.writerow(fields)
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()

    def log_message(self, *_):
        """Keep no address and no time."""


def make_server(port: int, table: Path) -> ThreadingHTTPServer:
    """Return the server, for this machine only: put a web server with https before it."""
    handler = partial(Collector, directory=str(HERE), table=table)
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    print(f"The form is on http://localhost:{port}, and reports go to reports.csv. Ctrl-C ends it.")
    with make_server(port, Path("reports.csv")) as server:
        server.serve_forever()
