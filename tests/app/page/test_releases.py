"""Past releases: they count, are verified, signed and listed; and models, which predict."""

import json
import re
import shutil
from html import unescape
from tempfile import SpooledTemporaryFile
from time import sleep

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import labeldp as ldp
from app.page.page_client import HIDDEN, charges, ready
from helpers import posix_only
from labeldp.accounts import reading
from labeldp.accounts.signatures import key_text
from labeldp.app import card_check
from labeldp.app.page import model_page, releases

CARD = "out.csv.card.json"
KEY = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture
def root(client):
    return client.site.folder.root


@pytest.fixture
def model(client):
    """Return the name of a model that was released."""
    client.release(ready(client, kind="model", epsilon=2))
    return "model"


# ---- what was spent before -------------------------------------------------------------------------------------


def test_a_second_release_of_the_same_values_is_shown_to_cost_again(client):
    client.release(ready(client, limit=3))
    unfinished = ready(client, out="again.csv")
    words = client.get(f"{unfinished.path}/release").words
    assert "These values were released before" in words
    assert "ε = 1 becomes ε = 2, and a guess of 50 % can become 88 %" in words
    budget = client.get(f"{unfinished.path}/budget").words
    assert "costs again" in budget
    assert "they can be 88 % certain at most" in budget
    assert "ε = 1 that the ledger has spent before" in budget
    words = client.budget(unfinished, out="again.csv", ledger="another.jsonl").words
    assert "another.jsonl does not count" in words
    assert "out.csv.card.json, ε = 1, paid for by book.jsonl" in words
    assert "they can be 73 % certain at most" in client.get(f"{unfinished.path}/budget").words


def test_a_score_and_an_earlier_release_count_on_every_page_of_a_model(client, root):
    client.release(ready(client))
    shutil.copy(root / "book.jsonl", root / "a copy.jsonl")  # which has not the rest
    unfinished = ready(client, kind="model", epsilon=5, score=4)
    assert "271; 30 others are held out, for the score" in client.get(f"{unfinished.path}/release").words
    done, card = client.release(unfinished).words, client.get("/card?name=model/card.json").words
    assert "e^ε = 2.72×; by everything in its ledger, ε = 10" in client.get(f"/card?name={CARD}").words
    for words in (done, card, client.get("/report?card=model/card.json").words):
        assert "A model was trained on 271 labels with noise, for ε = 9 in all, its score" in words
        assert "by everything in its ledger, ε = 10, by at most 22,027×" in words
        assert "After this model alone they can be" in words
    assert f"Do not share the folder “{root.name}”" in done
    words = client.get("/releases").words
    assert "a model of price ε = 9" in words
    assert "not in this folder" not in words


def test_a_new_ledger_for_a_column_that_was_released_before_is_pointed_out_under_any_file_name(client, root):
    client.release(ready(client, limit=1))
    shutil.copy(root / "homes.csv", root / "dropped.csv")
    unfinished, warning = client.read("dropped.csv", "price"), "Was price released before?"
    client.describe(unfinished, missing="yes")
    assert warning in client.get(f"{unfinished.path}/budget").words
    words = client.budget(unfinished, ledger="new.jsonl", out="more.csv").words
    assert warning in words
    assert "Name book.jsonl as the ledger" in words
    assert warning not in client.budget(unfinished, ledger="book.jsonl", epsilon="none").words
    client.budget(unfinished, ledger="new.jsonl", out="more.csv")
    other = client.read("homes.csv", "rooms")
    assert warning.replace("price", "rooms") not in client.describe(other, bounds=(0, 9)).words
    (root / CARD).unlink()
    (root / "book.jsonl").rename(root / "old.price.ledger.jsonl")
    assert "old.price.ledger.jsonl, ε = 1" in client.get(f"{unfinished.path}/release").words


def test_the_list_shows_which_release_a_charge_paid_for(client, root):
    client.release(ready(client))
    ldp.Ledger.open(root / "book.jsonl").charge("a survey", epsilon=0.5)
    words = client.get("/releases").words
    assert f"labels with noise {CARD}" in words
    assert "a survey not in this folder" in words


# ---- cards and signatures --------------------------------------------------------------------------------------


def test_a_release_is_verified_signed_and_reported(client, root):
    client.release(ready(client, limit=3))
    words = client.get("/releases").words
    assert CARD in words
    assert "ε = 2 is left" in words
    assert "it holds" in client.get(f"/card?name={CARD}").words
    signed = client.upload("key", KEY, "/sign", name=CARD)
    assert "Signed by" in signed.words
    assert "signed by the trusted key" in signed.words
    assert "holds, signed" in client.get("/releases").words
    assert client.upload("key", KEY, "/sign", name=CARD).status == 400
    assert (
        client.get(f"/report?card={CARD}&save=yes").header("content-disposition").endswith("out.csv.report.html")
    )
    table = root / "out.csv"
    table.write_text(table.read_text().replace("north", "South"))
    broken = client.get(f"/card?name={CARD}")
    assert "<h1>Do not rely on this: it does not hold</h1>" in broken.html
    assert "out.csv is another file, was changed" in broken.html.partition('id="files"')[0]
    assert "does not hold, signed" in client.get("/releases").words
    assert "does not hold is not signed" in client.upload("key", KEY, "/sign", name=CARD, again="yes").words
    assert client.file(CARD, "table").status == 400


def test_a_key_is_created_signs_and_is_recognised_and_is_stored_nowhere(client, root):
    client.release(ready(client))
    before, phrase = {path.name for path in root.rglob("*")}, "a long one"
    assert client.post("/key", name=CARD, new_passphrase="x" * 7).status == 400
    key = client.post("/key", name=CARD, new_passphrase=phrase)
    assert key.header("content-disposition").startswith("attachment")
    assert {path.name for path in root.rglob("*")} == before
    assert client.upload("key", key.body, "/sign", name=CARD, passphrase=phrase[1:]).status == 400
    signed = client.upload("key", key.body, "/sign", name=CARD, passphrase=phrase)
    public = re.search(r"ssh-ed25519 [\w+/=]+", signed.html)[0]
    assert "signed by the trusted key" in client.post("/trust", name=CARD, trust=public).words
    assert "--trust" not in client.get(f"/card?name={CARD}").words
    someone = key_text(Ed25519PrivateKey.generate().public_key())
    assert "which is not a key you trust" in client.post("/trust", name=CARD, trust=someone).words
    assert client.post("/trust", name=CARD, trust="ssh-ed25519 none").status == 400


def test_what_is_too_large_for_a_key_is_refused_before_any_of_it_is_on_the_disk(client, monkeypatch):
    client.release(ready(client))
    written = []
    monkeypatch.setattr(SpooledTemporaryFile, "rollover", written.append)
    assert "far too large for a key" in client.upload("key", b"-" * (1 << 21), "/sign", name=CARD).words
    assert written == []


@posix_only
@pytest.mark.parametrize("what", ["table", "report", "signature", "card"])
def test_links_beside_a_card_are_neither_read_nor_handed_out(client, root, what, monkeypatch):
    client.release(ready(client, report="yes" if what == "report" else ""))
    client.upload("key", KEY, "/sign", name=CARD, passphrase="")
    read, sha256 = [], card_check.sha256
    ends = {"table": "", "report": ".report.html", "signature": ".card.json.sig", "card": ".card.json"}
    path = root / f"out.csv{ends[what]}"
    assert client.file(CARD, what).status == 200
    path.rename(root / f"moved-{path.name}")
    path.symlink_to(root / (f"moved-{path.name}" if what in ("table", "card") else "homes.csv"))
    monkeypatch.setattr(card_check, "sha256", lambda file: read.append(file) or sha256(file))
    answer, shown = client.file(CARD, what), client.get("/releases").words
    assert answer.status == 400
    assert HIDDEN not in answer.html
    assert (f" {CARD} " in shown) == (what != "card")
    assert ("signed" in shown) == (what in ("table", "report"))
    if what == "table":
        assert "out.csv is not beside the card" in client.get(f"/card?name={CARD}").words
        assert "is a link" in client.upload("key", KEY, "/sign", name=CARD, again="yes").words
        assert read == []


def test_a_folder_that_is_too_large_is_not_compared_in_the_list(client, root, monkeypatch):
    ldp.privatize_file(
        root / "homes.csv", f"{root}/parts/", label="price", bounds=(0, 100), epsilon=1, missing="drop"
    )
    assert "parts.card.json holds" in client.get("/releases").words
    monkeypatch.setattr(releases, "MOST_BYTES", 10)
    assert "parts.card.json not checked yet" in client.get("/releases").words


def test_each_view_reads_and_proves_a_card_once(client, monkeypatch):
    client.release(ready(client))
    check, count = reading.contradictions, []
    monkeypatch.setattr(reading, "contradictions", lambda *given: (count.append(1), check(*given))[1])
    for page in ("/releases", f"/card?name={CARD}", f"/report?card={CARD}", f"/file?card={CARD}&what=table"):
        count.clear()
        assert client.get(page).status == 200
        assert count == [1], page


def test_a_card_of_a_card_does_not_take_its_place(client, root):
    client.release(ready(client))
    (root / f"{CARD}.card.json").write_text("{}")
    assert "it holds" in client.get(f"/card?name={CARD}").words
    assert client.file(CARD, "card").body == (root / CARD).read_bytes()


def test_all_links_of_a_model_in_a_folder_of_a_folder_lead_somewhere(client, root):
    (root / "sub").mkdir()
    pages = [client.release(ready(client, kind="model", folder="sub/m", report="yes", epsilon=2))]
    pages += [client.get("/releases"), client.get("/card?name=sub/m/card.json")]
    links = {unescape(link) for page in pages for link in re.findall(r'href="([^"#]+)"', page.html)}
    saved = [f"/file?card=sub/m/card.json&what={what}" for what in ("card", "model", "report", "report&open=yes")]
    expected = {"/card?name=sub/m/card.json", "/model?name=sub/m", *saved}
    assert {link for link in links if "sub/m" in link} == {f"{client.site.keys.base}{link}" for link in expected}
    assert {client.get(link).status for link in links if link.startswith("/")} == {200}


# ---- predictions -----------------------------------------------------------------------------------------------


def test_a_model_predicts_for_a_table_of_the_folder_and_overwrites_nothing(client, root, model):
    paid = charges(client)
    (root / "new.csv").write_text(f"side;rooms;price;name\neast;3,5;{HIDDEN};a\nnorth;;x;b\n")
    (root / "new.predicted.csv").write_text("mine")
    shown = client.predict(model, "new.csv")
    for part in (
        "2 rows",
        "are in new.predicted-2.csv",
        "'side', 'rooms'",
        "'name', 'price'",
        "side: 1 value was new",
    ):
        assert part in shown.words
    written = (root / "new.predicted-2.csv").read_text()
    assert written.splitlines()[0] == "side;rooms;prediction"
    assert HIDDEN not in written + shown.html
    assert (root / "new.predicted.csv").read_text() == "mine"
    client.predict(model, "new.csv", keep=" name,")
    assert (root / "new.predicted-3.csv").read_text().splitlines()[0] == "side;rooms;name;prediction"
    assert "'Price' is what the model predicts" in client.predict(model, "new.csv", keep="Price").words
    assert charges(client) == paid


def test_predictions_have_no_column_that_was_left_out_and_need_no_private_one(client, root, model):
    client.read("homes.csv", "price", drop=["side"])
    client.predict(model, "homes.csv", keep="side")
    assert (root / "homes.predicted.csv").read_text().startswith("rooms,prediction\n")
    client.read("homes.csv", "rooms")
    assert "needs the column 'rooms', which you chose as private" in client.predict(model, "homes.csv").words


@pytest.mark.parametrize("how", ["opened again", "changed in a tab", "open in a second tab", "read the wrong way"])
def test_a_private_column_stays_private_until_another_is_chosen(client, root, model, how):
    others = root / "others.csv"
    others.write_text((root / "homes.csv").read_text())
    first = client.unfinished(client.post("/open", path="others.csv"))
    if how == "open in a second tab":
        client.post("/open", path="others.csv")
    client.name(first, "rooms", drop=["side"])
    first.reading.wait()
    if how == "read the wrong way":
        client.written(first, separator=";")
        client.written(first, separator=",")
    elif how != "open in a second tab":
        others.write_text(others.read_text() + "1,north,12.5\n")
        if how == "opened again":
            client.post("/open", path="others.csv")
        else:
            client.name(first, "rooms")  # refused: the file changed
            assert first.label is None
    assert "'rooms', which you chose as private" in client.predict(model, "others.csv").words
    assert not list(root.glob("*predicted*"))
    newest = client.unfinished(client.post("/open", path="others.csv"))
    client.name(newest, "price", drop=["side"])
    client.predict(model, "others.csv")
    assert (root / "others.predicted.csv").read_text().startswith("rooms,prediction\n")


@posix_only
def test_a_table_that_becomes_another_after_the_click_is_not_predicted_for(
    client, root, model, tmp_path_factory, monkeypatch
):
    table, outside, load = root / "homes.csv", tmp_path_factory.mktemp("outside") / "homes.csv", ldp.load_model
    outside.write_text("side,rooms\nnorth,777\n")
    for swap, sentence in (
        (lambda: table.write_bytes(outside.read_bytes()), "the file changed while it was read"),
        (lambda: (table.unlink(), table.symlink_to(outside)), "something else than files of the folder"),
    ):
        monkeypatch.setattr("labeldp.learning.models.load_model", lambda path, swap=swap: (swap(), load(path))[1])
        assert sentence in client.predict(model, "homes.csv").words
    assert not list(root.glob("*predicted*"))


@pytest.mark.parametrize(("table", "part"), [("../homes.csv", "inside the folder"), ("other.csv", "'rooms'")])
def test_a_table_that_a_model_cannot_predict_for_is_refused_in_a_sentence(client, root, model, table, part):
    (root / "other.csv").write_text("side,price\nnorth,3\n")
    before = set(root.iterdir())
    assert part in client.predict(model, table).words
    assert set(root.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("how", ["by its button", "at the end"])
def test_predictions_for_a_table_can_be_stopped_and_the_server_waits_for_them(client, model, monkeypatch, how):
    def slow(*_, progress, **__):
        for _ in range(1200):
            progress("Predicting", 0, None)
            sleep(0.1)

    monkeypatch.setattr(model_page, "predict_file", slow)
    running = client.post("/model/table", name=model, table="homes.csv")
    at = re.search(r'action="(\S+)/stop"', running.html)[1]
    assert json.loads(client.get(at).body)["state"] == "running"
    assert client.site.is_busy
    if how == "by its button":
        client.post(f"{at}/stop")
    else:
        client.site.finish()
    name = at.rpartition("/")[2]
    client.site.works[name].wait(60)
    assert "Stopped. Nothing was written." in client.get(f"/model?name=model&work={name}").words
    assert not client.site.is_busy
