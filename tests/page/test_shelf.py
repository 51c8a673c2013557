"""What was released before: it counts, is verified, signed and told apart."""

import json
import re
import shutil
from html import unescape
from tempfile import SpooledTemporaryFile
from time import sleep

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from helpers import posix_only
from labeldp.cards import reading
from labeldp.cards.signatures import key_text
from labeldp.files import card_check, privatize_file
from labeldp.files.models import load_model
from labeldp.ledger import Ledger
from labeldp.page import shelf
from page_client import HIDDEN, charges, ready

CARD = "out.csv.card.json"
KEY = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_a_second_release_of_the_same_labels_says_that_it_costs_again(client):
    client.release(ready(client, limit=3))
    draft = ready(client, out="again.csv")
    words = client.get(f"/draft/{draft.id}/release").words
    assert "These labels were released before" in words
    assert "ε = 1 becomes ε = 2, and a guess of 50 % can become 88 %" in words
    assert "costs again" in client.get(f"/draft/{draft.id}/budget").words
    client.order(draft, out="again.csv", ledger="another.jsonl")
    words = client.get(f"/draft/{draft.id}/release").words
    assert "another.jsonl does not count" in words
    assert "out.csv.card.json, ε = 1, paid for by book.jsonl" in words


def test_a_score_and_an_earlier_release_count_on_every_page_of_a_model(client):
    client.release(ready(client))
    (first,) = client.site.folder.root.glob("*.card.json")
    (ledger,) = client.site.folder.root.glob("*.jsonl")
    shutil.copy(ledger, ledger.with_name("a copy.jsonl"))  # which has not the rest
    draft = ready(client, leaves="model", epsilon=5, score=4)
    assert (
        "rows that it learns from 271; 30 others are held out, for the score"
        in client.get(f"/draft/{draft.id}/release").words
    )
    done, card = client.release(draft).words, client.get("/shelf/card?name=model/card.json").words
    report = client.get("/shelf/report?card=model/card.json").words
    earlier = client.get(f"/shelf/card?name={first.name}").words
    assert "e^ε = 2.72×; by everything in its ledger, ε = 10, by at most 22,027×" in earlier
    for words in (done, card, report):
        assert "A model learned from 271 labels with noise, for ε = 9 in all, its score" in words
        assert "by everything in its ledger, ε = 10, by at most 22,027×" in words
        assert "After this model alone they can be" in words
        assert "Ask for a score" not in words
    assert f"Do not pass on the folder “{client.site.folder.root.name}”" in done
    shelf_words = client.get("/shelf").words
    assert "a model of price ε = 9" in shelf_words
    assert "not in this folder" not in shelf_words


def test_a_new_ledger_for_a_column_that_was_released_before_is_pointed_out_under_any_file_name(client):
    client.release(ready(client, limit=1))
    root = client.site.folder.root
    (root / "dropped.csv").write_bytes((root / "homes.csv").read_bytes())
    draft = client.read("dropped.csv", "price")
    client.choose(draft, missing="yes")
    warning = "Was price released before?"
    assert warning in client.get(f"/draft/{draft.id}/budget").words
    assert warning not in client.get(f"/draft/{draft.id}/budget?ledger=book.jsonl").words
    client.order(draft, ledger="new.jsonl", out="more.csv")
    words = client.get(f"/draft/{draft.id}/release").words
    assert warning in words
    assert "Name book.jsonl as the ledger" in words
    other = client.read("homes.csv", "rooms")
    client.choose(other, bounds=(0, 9))
    assert "released before?" not in client.get(f"/draft/{other.id}/budget").words
    (root / "out.csv.card.json").unlink()
    (root / "book.jsonl").rename(root / "old.price.ledger.jsonl")
    assert "old.price.ledger.jsonl, ε = 1" in client.get(f"/draft/{draft.id}/release").words


def test_odds_of_a_second_release_count_what_the_ledger_has_spent(client):
    client.release(ready(client, limit=3))
    draft = client.read("homes.csv", "price")
    client.choose(draft, missing="yes")
    first = client.get(f"/draft/{draft.id}/budget?epsilon=1&ledger=new.jsonl").words
    second = client.get(f"/draft/{draft.id}/budget?epsilon=1&ledger=book.jsonl").words
    assert "they can be 73 % certain at most" in first
    assert "they can be 88 % certain at most" in second
    assert "about 88 at most after it" in second
    assert "ε = 1 that the ledger has spent before" in second


def test_the_shelf_verifies_signs_and_reports(client):
    client.release(ready(client, limit=3))
    words = client.get("/shelf").words
    assert "out.csv.card.json" in words
    assert "ε = 2 is left" in words
    name, key = CARD, KEY
    assert "it holds" in client.get(f"/shelf/card?name={name}").words
    signed = client.upload("key", key, "/shelf/sign", name=name)
    assert "Signed by" in signed.words
    assert "signed by the trusted key" in signed.words
    assert "holds, signed" in client.get("/shelf").words
    assert "exists already" in client.upload("key", key, "/shelf/sign", name=name).words
    assert client.post("/shelf/report", name=name).status == 200
    assert client.file(name, "report").status == 200
    table = client.site.folder.root / "out.csv"
    table.write_text(table.read_text().replace("north", "South"))
    broken = client.get(f"/shelf/card?name={name}")
    assert "<h1>Do not rely on this: it does not hold</h1>" in broken.html
    assert "out.csv is another file, was changed" in broken.html.partition('id="files"')[0]
    assert "does not hold, signed" in client.get("/shelf").words
    assert "does not hold is not signed" in client.upload("key", key, "/shelf/sign", name=name, again="yes").words
    assert client.file(name, "table").status == 400


def test_a_key_is_made_signs_and_is_recognised_and_lies_nowhere(client):
    client.release(ready(client))
    name, root, long = "out.csv.card.json", client.site.folder.root, "a long one"
    before = {path.name for path in root.rglob("*")}
    assert "8 characters or more" in client.post("/shelf/key", name=name, new_passphrase="x" * 7).words
    made = client.post("/shelf/key", name=name, new_passphrase=long)
    assert made.header("content-disposition").startswith("attachment")
    assert {path.name for path in root.rglob("*")} == before
    wrong = client.upload("key", made.body, "/shelf/sign", name=name, passphrase=long[1:])
    assert "the passphrase does not fit" in wrong.words
    signed = client.upload("key", made.body, "/shelf/sign", name=name, passphrase=long)
    public = re.search(r"ssh-ed25519 [\w+/=]+", signed.html)[0]
    own = client.post("/shelf/trust", name=name, trust=public).words
    assert "signature holds: the card is as it was written, signed by the trusted key" in own
    someone = key_text(Ed25519PrivateKey.generate().public_key())
    assert "which is not a key you trust" in client.post("/shelf/trust", name=name, trust=someone).words
    assert "the key cannot be read" in client.post("/shelf/trust", name=name, trust="ssh-ed25519 none").words
    assert "below you can name the public key" in client.get(f"/shelf/card?name={name}").words


def test_what_is_too_large_for_a_key_is_refused_before_any_of_it_is_on_the_disk(client, monkeypatch):
    client.release(ready(client))
    written = []
    monkeypatch.setattr(SpooledTemporaryFile, "rollover", written.append)
    answer = client.upload("key", b"-" * (1 << 21), "/shelf/sign", name="out.csv.card.json")
    assert written == []
    assert "far too large for a key" in answer.words


def test_the_shelf_says_which_release_a_charge_paid_for(client):
    client.release(ready(client))
    Ledger.open(client.site.folder.root / "book.jsonl").charge("a survey", epsilon=0.5)
    words = client.get("/shelf").words
    assert "labels with noise out.csv.card.json" in words
    assert "a survey not in this folder" in words


@posix_only
@pytest.mark.parametrize("what", ["table", "report", "signature", "card"])
def test_links_beside_a_card_are_neither_read_nor_handed_out(client, what, monkeypatch):
    client.release(ready(client, report="yes" if what == "report" else ""))
    client.upload("key", KEY, "/shelf/sign", name=CARD)
    root, read, sha256 = client.site.folder.root, [], card_check.sha256
    ends = {"table": "", "report": ".report.html", "signature": ".card.json.sig", "card": ".card.json"}
    path = root / f"out.csv{ends[what]}"
    assert client.file(CARD, what).status == 200
    path.rename(root / f"moved-{path.name}")
    path.symlink_to(root / (f"moved-{path.name}" if what in ("table", "card") else "homes.csv"))
    monkeypatch.setattr(card_check, "sha256", lambda file: read.append(file) or sha256(file))
    answer, shown = client.file(CARD, what), client.get("/shelf").words
    assert answer.status == 400
    assert HIDDEN not in answer.html
    assert (f" {CARD} " in shown) == (what != "card")
    assert ("signed" in shown) == (what in ("table", "report"))
    if what == "table":
        assert (
            "out.csv is not beside the card, where links do not count"
            in client.get(f"/shelf/card?name={CARD}").words
        )
        assert "is a link" in client.upload("key", KEY, "/shelf/sign", name=CARD, again="yes").words
        assert read == []


def test_a_folder_that_is_too_large_is_not_compared_where_cards_are_listed(client, monkeypatch):
    root = client.site.folder.root
    privatize_file(root / "homes.csv", f"{root}/parts/", label="price", bounds=(0, 100), epsilon=1, missing="drop")
    assert "parts.card.json holds" in client.get("/shelf").words
    monkeypatch.setattr(shelf, "MOST_BYTES", 10)
    assert "parts.card.json not checked yet" in client.get("/shelf").words


def test_a_card_of_a_card_does_not_take_its_place(client):
    client.release(ready(client))
    root = client.site.folder.root
    (root / f"{CARD}.card.json").write_text("{}")
    assert "it holds" in client.get(f"/shelf/card?name={CARD}").words
    assert client.file(CARD, "card").body == (root / CARD).read_bytes()


def test_all_links_of_a_model_in_a_folder_of_a_folder_lead_somewhere(client):
    (client.site.folder.root / "sub").mkdir()
    pages = [client.release(ready(client, leaves="model", folder="sub/m", report="yes", epsilon=2))]
    pages += [client.get("/shelf"), client.get("/shelf/card?name=sub/m/card.json")]
    links = {unescape(link) for page in pages for link in re.findall(r'href="([^"#]+)"', page.html)}
    assert {link for link in links if "sub/m" in link} == {
        f"{client.site.keys.room}/{link}"
        for link in (
            "shelf/card?name=sub/m/card.json",
            "model?name=sub/m",
            "file?card=sub/m/card.json&what=card",
            "file?card=sub/m/card.json&what=model",
            "file?card=sub/m/card.json&what=report",
            "file?card=sub/m/card.json&what=report&open=yes",
        )
    }
    assert {client.get(link).status for link in links if link.startswith("/")} == {200}


def test_a_model_predicts_for_a_table_of_the_folder_and_overwrites_nothing(client):
    client.release(ready(client, leaves="model", epsilon=2))
    root, paid = client.site.folder.root, charges(client)
    (root / "new.csv").write_text(f"side;rooms;price;name\neast;3,5;{HIDDEN};a\nnorth;;x;b\n")
    (root / "new.predicted.csv").write_text("mine")
    shown = client.predict("model", "new.csv")
    assert "2 rows, with price as predicted in the column prediction, are in new.predicted-2.csv" in shown.words
    assert "Copied from the table: 'side', 'rooms'." in shown.words
    assert "may hold true labels: 'name', 'price'." in shown.words
    assert "side: 1 value was new since the fit" in shown.words
    written = (root / "new.predicted-2.csv").read_text()
    assert written.splitlines()[0] == "side;rooms;prediction"
    assert HIDDEN not in written + shown.html
    assert (root / "new.predicted.csv").read_text() == "mine"
    client.predict("model", "new.csv", keep=" name,")
    assert (root / "new.predicted-3.csv").read_text().splitlines()[0] == "side;rooms;name;prediction"
    assert "'Price' is what the model predicts" in client.predict("model", "new.csv", keep="Price").words
    assert charges(client) == paid


def test_predictions_hold_no_column_that_the_owner_said_stays_and_need_no_private_one(client):
    client.release(ready(client, leaves="model", epsilon=2))
    client.read("homes.csv", "price", drop=["side"])
    client.predict("model", "homes.csv", keep="side")
    assert (client.site.folder.root / "homes.predicted.csv").read_text().startswith("rooms,prediction\n")
    client.read("homes.csv", "rooms")
    assert "needs the column 'rooms', which you said is private" in client.predict("model", "homes.csv").words


@pytest.mark.parametrize("how", ["opened again", "changed in a tab", "open in a second tab", "read the wrong way"])
def test_a_column_that_was_said_to_be_private_stays_private_until_another_is_said(client, how):
    client.release(ready(client, leaves="model", epsilon=2))
    homes, others = client.site.folder.root / "homes.csv", client.site.folder.root / "others.csv"
    others.write_text(homes.read_text())
    first = client.draft(client.post("/open", path="others.csv"))
    second = client.draft(client.post("/open", path="others.csv")) if how == "open in a second tab" else None
    client.name(first, "rooms", drop=["side"])
    first.reading.wait()
    if how == "read the wrong way":
        client.written(first, separator=";")
        client.written(first, separator=",")
    elif second is None:
        others.write_text(others.read_text() + "1,north,12.5\n")
        if how == "opened again":
            client.post("/open", path="others.csv")
        else:
            client.name(first, "rooms")  # refused: the file changed
            assert first.label is None
    refused = client.predict("model", "others.csv").words
    assert "needs the column 'rooms', which you said is private" in refused
    assert not list(client.site.folder.root.glob("*predicted*"))
    newest = client.draft(client.post("/open", path="others.csv"))
    client.name(newest, "price", drop=["side"])
    client.predict("model", "others.csv")
    assert (client.site.folder.root / "others.predicted.csv").read_text().startswith("rooms,prediction\n")


@posix_only
def test_a_table_that_becomes_another_after_the_click_is_not_predicted_for(client, tmp_path_factory, monkeypatch):
    client.release(ready(client, leaves="model", epsilon=2))
    table, outside = client.site.folder.root / "homes.csv", tmp_path_factory.mktemp("outside") / "homes.csv"
    outside.write_text("side,rooms\nnorth,777\n")
    for swap, sentence in (
        (lambda: table.write_bytes(outside.read_bytes()), "the file changed while it was read"),
        (lambda: (table.unlink(), table.symlink_to(outside)), "something else than files of the folder"),
    ):
        monkeypatch.setattr(
            "labeldp.files.models.load_model", lambda path, swap=swap: (swap(), load_model(path))[1]
        )
        assert sentence in client.predict("model", "homes.csv").words
    assert not list(client.site.folder.root.glob("*predicted*"))


def test_the_progress_of_work_that_is_forgotten_is_that_there_is_none(client):
    client.release(ready(client, leaves="model", epsilon=2))
    for path in ("/model/forgotten/progress", "/draft/forgotten/progress"):
        assert json.loads(client.get(path).body) == {"state": "none"}
    assert "too long ago" in client.get("/model?name=model&work=forgotten").words
    assert "too long ago" in client.post("/model/forgotten/stop", what="model").words


def test_a_table_that_a_model_cannot_predict_for_is_refused_in_a_sentence(client):
    client.release(ready(client, leaves="model", epsilon=2))
    (client.site.folder.root / "other.csv").write_text("side,price\nnorth,3\n")
    before = set(client.site.folder.root.iterdir())
    for table, sentence in (
        ("../homes.csv", "inside the folder"),
        ("other.csv", "'rooms'"),
        ("", "inside the folder"),
    ):
        assert sentence in client.predict("model", table).words
    assert set(client.site.folder.root.iterdir()) == before


def test_predictions_for_a_table_can_be_stopped_and_the_server_waits_for_them(client, monkeypatch):
    def slow(*_, progress, **__):
        for _ in range(1200):
            progress("Predicting", 0, None)
            sleep(0.1)

    client.release(ready(client, leaves="model", epsilon=2))
    monkeypatch.setattr("labeldp.page.model_page.predict_file", slow)
    for end in (lambda at: client.post(f"{at}/stop", what="model"), lambda _: client.site.drafts.finish()):
        running = client.post("/model/table", name="model", table="homes.csv")
        at = re.search(r'action="(\S+)/stop"', running.html)[1]
        assert json.loads(client.get(f"{at}/progress").body)["state"] == "running"
        assert client.site.drafts.is_busy
        end(at)
        name = at.rpartition("/")[2]
        client.site.drafts.work(name).wait(60)
        assert "Stopped. Nothing was written." in client.get(f"/model?name=model&work={name}").words
        assert not client.site.drafts.is_busy


def test_each_view_reads_and_proves_a_card_once(client, monkeypatch):
    client.release(ready(client))
    check, count = reading.contradictions, []
    monkeypatch.setattr(reading, "contradictions", lambda *given: (count.append(1), check(*given))[1])
    (card,) = client.site.folder.root.glob("*.card.json")
    for page in ("/shelf", f"/shelf/card?name={card.name}", f"/shelf/report?card={card.name}"):
        count.clear()
        assert client.get(page).status == 200
        assert count == [1], page
