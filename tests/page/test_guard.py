"""Attacks on the page: other sites, other programs, other users, other folders. Each must fail."""

import re

import pytest

from page_client import HOST, PORT, Client

PATHS = ["/", "/shelf", "/static/page.css", "/draft/x/release", "/no-such-page"]


@pytest.fixture
def client(tmp_path):
    (tmp_path / "homes.csv").write_text("rooms,price\n" + "2,31415\n" * 60)
    return Client(tmp_path)


@pytest.mark.parametrize("path", PATHS)
def test_without_the_cookie_nothing_is_shown(client, path):
    answer = client.request("GET", path)
    assert answer.status == 403
    assert "homes" not in answer.html
    assert client.request("GET", path, headers={"cookie": f"labeldp-{PORT}=guess"}).status == 403


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_gets(client):
    keys = client.site.keys
    answer = client.request("GET", keys.address)
    assert answer.status == 200
    assert f"url={keys.room}/" in answer.html
    cookie = answer.header("set-cookie")
    assert {"HttpOnly", "SameSite=strict", f"Path={keys.room}/"} <= {part.strip() for part in cookie.split(";")}
    assert client.site.keys.token not in cookie
    assert answer.header("referrer-policy") == "no-referrer"


@pytest.mark.parametrize("room", ["", "/x", "/.", "//"])
def test_outside_of_the_room_nothing_is_shown_not_even_where_the_room_is(client, room):
    """Browsers send a cookie to every port of this machine, if the path fits: so no other port may learn it."""
    client.enter()
    for method, path in (("GET", "/"), ("GET", f"/?token={client.site.keys.token}"), ("POST", "/open")):
        answer = client.request(method, path, room=room)
        assert answer.status == 403
        assert client.site.keys.room not in f"{answer.html} {answer.headers}"


def test_all_that_pages_link_to_and_lead_to_lies_in_the_room(client):
    client.enter()
    draft = client.read("homes.csv", "price")
    at, pages = f"/draft/{draft.id}", [client.get("/"), client.get("/shelf"), client.get("/no-such-page")]
    pages += [client.get(f"{at}/table"), client.get(f"{at}/label"), client.choose(draft, bounds=(0, 99_999))]
    pages += [client.order(draft, leaves="model"), client.release(draft), client.get("/model?name=model")]
    pages += [client.get("/shelf/card?name=model/card.json"), client.get("/static/page.js")]
    room = client.site.keys.room
    for page in pages:
        links = re.findall(r'(?:href|src|action|data-\w+)="([^"]*)"', page.html)
        assert [link for link in links if link.startswith("/") and not f"{link}/".startswith(f"{room}/")] == []
        assert not re.search(r'(fetch|sendBeacon)\(["/]', page.html)
    assert (
        client.request("POST", "/open", b"path=homes.csv&form=" + client.site.keys.form.encode())
        .header("location")
        .startswith(f"{room}/draft/")
    )


def test_the_token_works_once(client):
    client.enter()
    assert client.request("GET", f"/?token={client.site.keys.token}", headers={"cookie": ""}).status == 403
    assert client.request("GET", "/?token=guess", headers={"cookie": ""}).status == 403
    assert client.get("/").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1.evil.example:{PORT}",
        "",
    ],
)
def test_a_name_that_was_bound_to_this_machine_is_not_served(client, host):
    """DNS rebinding: a site makes its own name point to 127.0.0.1, and its scripts may read what that answers."""
    client.enter()
    for method, path in (("GET", "/"), ("POST", "/open"), ("GET", f"/?token={client.site.keys.token}")):
        assert client.request(method, path, headers={"host": host}).status == 421
    assert client.request("GET", "/", headers={"host": f"localhost:{PORT}"}).status == 200


FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": f"http://localhost:{PORT}"},
    {"origin": f"http://127.0.0.1:{PORT + 1}", "sec-fetch-site": "same-site"},
    {"origin": None, "sec-fetch-site": None},
    {"origin": None, "sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("path", ["/open", "/upload", "/close", "/alive", "/draft/x/release"])
def test_a_form_of_another_site_is_refused_even_with_the_cookie(client, path, headers):
    client.enter()
    body = f"form={client.site.keys.form}&path=homes.csv".encode()
    assert client.request("POST", path, body, headers).status == 403
    assert not client.site.lifetime.is_closed


def test_a_form_without_its_key_is_refused(client):
    client.enter()
    for path in ("/open", "/close", "/shelf/report", "/model"):
        assert client.request("POST", path, b"path=homes.csv&form=guess").status == 400
    assert client.upload("x.csv", b"a,b\n1,2\n", form="guess").status == 400
    assert not client.site.lifetime.is_closed
    assert not list(client.site.folder.root.glob(".labeldp*/*/x.csv"))


def test_scripts_of_another_port_of_this_machine_cannot_read_the_page(client):
    """For cookies all ports of a machine are one site."""
    client.enter()
    for mode, status in (("cors", 403), ("no-cors", 403), ("navigate", 200)):
        headers = {"sec-fetch-site": "same-site", "sec-fetch-mode": mode}
        assert client.request("GET", "/", headers=headers).status == status


@pytest.mark.parametrize("path", [*PATHS, "/shelf/card?name=../x", "/static/../guard.py", "/static/page.js"])
def test_every_answer_forbids_what_it_does_not_need(client, path):
    for answer in (client.request("GET", path), client.enter().request("GET", path)):
        policy = answer.header("content-security-policy")
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in dict(answer.headers)
        assert answer.header("cache-control") == "no-store"
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("cross-origin-resource-policy") == "same-origin"


def test_a_page_has_no_script_or_style_inside_that_its_policy_would_block(client):
    client.enter()
    draft = client.read("homes.csv", "price")
    client.choose(draft)
    for path in (
        "/",
        "/shelf",
        f"/draft/{draft.id}/table",
        f"/draft/{draft.id}/label",
        f"/draft/{draft.id}/budget",
    ):
        html = client.get(path).html
        assert "<style" not in html
        assert "style=" not in html
        assert " onclick" not in html
        assert "<script>" not in html
        assert "http://" not in html.replace("http://www.w3.org", "")


@pytest.mark.parametrize("length", ["999999999", "-1", "many"])
def test_a_form_that_is_far_too_long_is_refused_before_it_is_read(client, length):
    client.enter()
    assert client.request("POST", "/open", b"form=x", {"content-length": length}).status == 413


def test_a_form_that_lies_about_its_length_is_cut_off(client):
    client.enter()
    form = f"form={client.site.keys.form}&path=homes.csv&more=".encode()
    assert client.request("POST", "/open", form).status == 303
    for length in ("10", None):
        answer = client.request(
            "POST", "/open", form + (b"x" * 500_000 + b"&more=") * 10, {"content-length": length}
        )
        assert answer.status == 500


def test_other_methods_are_refused(client):
    client.enter()
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert client.request(method, "/").status == 405


def test_text_of_a_table_cannot_become_part_of_the_page(client):
    nasty = "<script>alert(1)</script>"
    (client.site.folder.root / "nasty.csv").write_text(
        f'"{nasty}","<img src=x>",price\n"{nasty}",b,1\n"a","b",2\n'
    )
    client.enter()
    draft = client.read("nasty.csv", "price")
    pages = [client.get(f"/draft/{draft.id}/table"), client.choose(draft), client.get(f"/draft/{draft.id}/label")]
    assert all("&lt;script&gt;alert" in page.html for page in (pages[0], pages[2]))
    assert not any(nasty in page.html or "<img" in page.html for page in pages)


def test_what_goes_wrong_inside_shows_where_and_not_what(client, monkeypatch, capfd):
    def broken(*_):
        raise RuntimeError("a label: 31415")

    client.enter()
    monkeypatch.setattr("labeldp.page.chosen_folder.ChosenFolder.tables", broken)
    answer = client.get("/")
    assert answer.status == 500
    assert "RuntimeError" in answer.html
    assert "31415" not in answer.html
    assert client.site.keys.token not in answer.html
    assert capfd.readouterr() == ("", "")


def test_web_sockets_are_not_answered(client):
    import asyncio

    sent = []

    async def talk():
        await client.app(
            {"type": "websocket", "path": "/", "headers": [(b"host", HOST.encode())]}, None, sent.append
        )

    asyncio.run(talk())
    assert sent == []
