"""Attacks on the page: other sites, other programs, other users. Each must fail."""

import re

import pytest

from app.page.page_client import HOST, PORT, Client

PATHS = ["/", "/releases", "/static/page.css", "/new/x/release", "/no-such-page"]
FORMS = ["/open", "/upload", "/end", "/new/x/release"]


@pytest.fixture
def client(tmp_path):
    (tmp_path / "homes.csv").write_text("rooms,price\n" + "2,31415\n3,31415\n" * 30)
    return Client(tmp_path)


@pytest.mark.parametrize("path", PATHS)
def test_without_the_cookie_nothing_is_shown(client, path):
    for headers in ({}, {"cookie": "labeldp=guess"}):
        answer = client.request("GET", path, headers=headers)
        assert answer.status == 403
        assert "homes" not in answer.html


def test_the_token_works_once_and_becomes_a_cookie_that_no_script_and_no_other_site_gets(client):
    keys = client.site.keys
    answer = client.request("GET", keys.address)
    cookie = answer.header("set-cookie")
    assert {"HttpOnly", "SameSite=strict", f"Path={keys.base}/"} <= {part.strip() for part in cookie.split(";")}
    assert keys.token not in cookie
    for token in (keys.token, "guess"):
        assert client.request("GET", f"/?token={token}").status == 403


@pytest.mark.parametrize("base", ["", "/x", "/.", "//"])
def test_outside_of_the_random_path_nothing_is_shown_not_even_the_path(client, base):
    """Browsers send a cookie to every port of this machine, if the path fits: so no other port may learn it."""
    client.enter()
    for method, path in (("GET", "/"), ("GET", f"/?token={client.site.keys.token}"), ("POST", "/open")):
        answer = client.request(method, path, base=base)
        assert answer.status == 403
        assert client.site.keys.base not in f"{answer.html} {answer.headers}"


def test_all_links_and_redirects_are_under_the_random_path(client):
    client.enter()
    begun = client.read("homes.csv", "price")
    pages = [client.get("/"), client.get("/no-such-page"), client.show(begun, "table")]
    pages += [client.describe(begun, bounds=(0, 99_999)), client.budget(begun)]
    pages += [client.release(begun), client.get("/releases"), client.get("/card?name=homes.private.csv.card.json")]
    base = client.site.keys.base
    for page in pages:
        links = re.findall(r'(?:href|src|action|data-\w+)="([^"]*)"', page.html)
        assert [link for link in links if link.startswith("/") and not f"{link}/".startswith(f"{base}/")] == []
    opened = client.request("POST", "/open", b"path=homes.csv")
    assert opened.header("location").startswith(f"{base}/new/")


@pytest.mark.parametrize("host", ["evil.example", f"127.0.0.1.evil.example:{PORT}", ""])
def test_a_name_that_was_bound_to_this_machine_is_not_served(client, host):
    """DNS rebinding: a site makes its own name point to 127.0.0.1, and its scripts may read the answers."""
    entry = f"/?token={client.site.keys.token}"
    assert client.request("GET", entry, headers={"host": host}).status == 400
    client.enter()  # the token was not used up
    for method, path in (("GET", "/"), ("POST", "/open")):
        assert client.request(method, path, headers={"host": host}).status == 400
    assert client.request("GET", "/", headers={"host": f"localhost:{PORT}"}).status == 200


FOREIGN = ["http://evil.example", "null", f"http://localhost:{PORT}", f"http://127.0.0.1:{PORT + 1}", None]


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("path", FORMS)
def test_a_form_of_another_site_is_refused_even_with_the_cookie(client, path, origin):
    client.enter()
    assert client.request("POST", path, b"path=homes.csv", {"origin": origin}).status == 403
    assert not client.site.is_closed
    assert client.site.unfinished == {}


@pytest.mark.parametrize("path", [*PATHS, "/card?name=../x", "/static/../guard.py", "/static/page.js"])
def test_every_answer_forbids_scripts_frames_and_copies_elsewhere(client, path):
    other = client.request("GET", path, headers={"host": "evil.example"})
    for answer in (other, client.request("GET", path), client.enter().request("GET", path)):
        policy = answer.header("content-security-policy")
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in dict(answer.headers)
        assert answer.header("cache-control") == "no-store"
        assert answer.header("cross-origin-resource-policy") == "same-origin"


def test_other_methods_are_refused(client):
    client.enter()
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert client.request(method, "/").status == 403
        assert client.request(method, "/", headers={"origin": f"http://{HOST}"}).status == 405


def test_text_of_a_table_cannot_become_part_of_the_page(client):
    nasty = "<script>alert(1)</script>"
    table = f'"{nasty}","<img src=x>",price\n"{nasty}",b,1\n"a","b",2\n'
    (client.site.folder.root / "nasty.csv").write_text(table)
    client.enter()
    begun = client.read("nasty.csv", "price")
    pages = [client.show(begun, "table"), client.describe(begun), client.budget(begun)]
    assert all("&lt;script&gt;alert" in page.html for page in (pages[0], pages[2]))
    assert not any(nasty in page.html or "<img" in page.html for page in pages)


def test_an_unexpected_error_shows_where_it_happened_and_not_its_message(client, monkeypatch, capfd):
    def broken(*_):
        raise RuntimeError("a label: 31415")

    client.enter()
    monkeypatch.setattr(type(client.site.folder), "tables", broken)
    answer = client.get("/")
    assert answer.status == 500
    assert "RuntimeError" in answer.html
    assert "31415" not in answer.html
    assert capfd.readouterr() == ("", "")
