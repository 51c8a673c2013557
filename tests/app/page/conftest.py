"""A page of a folder with one table, for all tests of the page."""

import pytest

from app.page.page_client import HIDDEN, Client


@pytest.fixture
def client(tmp_path):
    rows = [f"{n % 7},{'north' if n % 2 else 'south'},{10 + n % 50}.5" for n in range(300)]
    (tmp_path / "homes.csv").write_text("\n".join(["rooms,side,price", *rows, f"3,,{HIDDEN}", "4,north,"]) + "\n")
    return Client(tmp_path).enter()


@pytest.fixture
def root(client):
    return client.site.folder.root
