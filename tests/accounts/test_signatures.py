"""Signatures of cards: any changed byte, another key, another purpose and another table are found."""

import json
import shutil
import string
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import labeldp as ldp
from card_cases import card
from command_line import run, said
from forged_cards import fields, forged, signature
from labeldp.accounts.signatures import check_signature, key_name

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([k]) * 32) for k in (1, 2))
TRUSTED = [KEY.public_key()]
TEXT = ldp.TwoPoint(bounds=(0, 5), epsilon=1.0).to_json()
SIGNED = signature(TEXT, KEY)
AS_WRITTEN = "as it was written"
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


def holds(text, signed, trusted=TRUSTED):
    check = check_signature(text, signed, trusted)
    assert (AS_WRITTEN in check.detail) == (check.holds is True)
    return check.holds


# ---- what is found --------------------------------------------------------------------------------------------


def test_a_card_is_as_it_was_written_only_by_a_key_that_is_trusted():
    assert holds(TEXT, SIGNED) is True
    assert holds(TEXT, SIGNED, [OTHER.public_key(), *TRUSTED]) is True
    assert holds(TEXT, SIGNED, []) is None
    assert holds(TEXT, None, []) is None
    assert holds(TEXT, None) is False
    assert holds(TEXT, signature(TEXT, OTHER)) is False
    assert not any(AS_WRITTEN in check.detail for check in ldp.verify_card(TEXT).checks)


def test_any_byte_that_is_changed_added_or_gone_is_found_in_the_card_and_in_the_signature():
    for k in range(len(TEXT)):
        flipped = chr(ord(TEXT[k]) ^ 1)
        for change in (TEXT[:k] + flipped + TEXT[k + 1 :], TEXT[:k] + TEXT[k + 1 :], TEXT[:k] + " " + TEXT[k:]):
            assert holds(change, SIGNED) is False
    for k in range(len(SIGNED)):
        if not SIGNED[k].isspace():  # where its lines end says nothing
            for other in (chr(ord(SIGNED[k]) ^ 1), "A", "=", ""):
                if other != SIGNED[k]:
                    assert holds(TEXT, SIGNED[:k] + other + SIGNED[k + 1 :]) is False
    last = SIGNED.index("=")  # before it, two bits of a letter say nothing: they are 0
    for letter in {*string.ascii_letters, *string.digits} - {SIGNED[last - 1]}:
        assert holds(TEXT, SIGNED[: last - 1] + letter + SIGNED[last:]) is False
    assert holds(TEXT, SIGNED.replace("\n", "\r\n")) is True


def test_a_key_that_is_put_in_the_place_of_another_does_not_fit():
    assert holds(TEXT, signature(TEXT, KEY)) is True
    public = fields(b"ssh-ed25519", OTHER.public_key().public_bytes_raw())
    assert holds(TEXT, signature(TEXT, KEY, public=public), [*TRUSTED, OTHER.public_key()]) is False
    assert holds(TEXT, signature(TEXT, OTHER)) is False
    assert holds(TEXT, signature(TEXT, OTHER), [OTHER.public_key()]) is True


@pytest.mark.parametrize("namespace", [b"git", b"file", b"", b"labeldp.card2", b"labeldp"])
def test_what_a_key_signed_for_another_purpose_is_no_signature_of_a_card(namespace):
    assert holds(TEXT, signature(TEXT, KEY, signed_as=namespace, namespace=namespace)) is False
    assert holds(TEXT, signature(TEXT, KEY, signed_as=namespace)) is False


@pytest.mark.parametrize(
    "changes",
    [
        {"head": b"SSHSIG\0\0\0\2"},
        {"head": b"SSHSIH\0\0\0\1"},
        {"reserved": b"x"},
        {"hashed": b"md5"},
        {"hashed": b"sha256"},
        {"public": fields(b"ssh-rsa", b"\1" * 32)},
        {"public": fields(b"ssh-ed25519", b"\1" * 31)},
        {"public": b""},
        {"public": fields(b"ssh-ed25519", b"\0" * 32)},
        {"signed": fields(b"ssh-ed25519", b"\0" * 64)},
        {"signed": fields(b"ssh-ed25519", KEY.sign(TEXT.encode()))},
        {"signed": b"\xff" * 4},
        {"more": b"x"},
    ],
)
def test_a_signature_of_another_form_is_refused(changes):
    assert holds(TEXT, signature(TEXT, KEY, **changes)) is False


@pytest.mark.parametrize("nothing", ["", " ", "{}", BEGIN, f"{BEGIN}\n{END}", "\0é"])
def test_what_is_no_signature_is_refused_even_where_nobody_is_trusted(nothing):
    for trusted in ([], TRUSTED):
        assert holds(TEXT, nothing, trusted) is False


OPENSSH = shutil.which("ssh-keygen")


def openssh(what, *words, text=None):
    """Run ssh-keygen on signatures of cards, and return what it says."""
    order = [OPENSSH, "-Y", what, "-n", "labeldp.card", *words]
    return subprocess.run(order, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603


@pytest.mark.skipif(OPENSSH is None, reason="needs OpenSSH")
def test_openssh_takes_these_signatures_and_makes_them(desk):
    (desk / "key").chmod(0o600)
    made = openssh("sign", "-f", desk / "key", desk / "card.json")
    assert (desk / "card.json.sig").read_text() == SIGNED, made
    shown = openssh("check-novalidate", "-s", desk / "card.json.sig", text=TEXT)
    assert key_name(KEY.public_key()) in shown


# ---- keys -----------------------------------------------------------------------------------------------------

RSA, CURVE = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())


def private(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def public(key):
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


@pytest.fixture
def desk(tmp_path):
    """A folder with a card and a key."""
    (tmp_path / "card.json").write_text(TEXT)
    (tmp_path / "key").write_bytes(private(KEY))
    (tmp_path / "key.pub").write_bytes(public(KEY) + b" a comment\n")
    return tmp_path


NO_KEYS = [
    public(RSA),
    public(CURVE),
    private(KEY),
    b"",
    public(KEY) + b"\n" + public(OTHER),
    b"ssh-ed25519 AAAA",
    b"x" * (1 << 15),
]


@pytest.mark.parametrize("key", NO_KEYS)
def test_another_kind_of_key_is_not_trusted(desk, key):
    (desk / "key").write_bytes(key)
    run("verify", desk / "card.json", "--trust", desk / "key", code=2)


# ---- from the owner to the reviewer -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    """A private table, its card and its signature, and the owner's keys."""
    folder = tmp_path_factory.mktemp("owner")
    (folder / "in.csv").write_text("id,price\n" + "".join(f"{i},{1 + i % 4}\n" for i in range(50)))
    for name in ("out.csv", "other.csv"):
        order = ("--label", "price", "--bounds", 0, 5, "--epsilon", 1, "--mechanism", "two-point")
        run("privatize", folder / "in.csv", "-o", folder / name, *order)
    (folder / "key.pub").write_bytes(public(KEY))
    text = (folder / "out.csv.card.json").read_text()
    (folder / "out.csv.card.json.sig").write_text(signature(text, KEY))
    return folder


@pytest.fixture
def sent(owner, tmp_path):
    """What the reviewer gets of it: a table, its card and its signature, and who is trusted."""
    for name in ("out.csv", "out.csv.card.json", "out.csv.card.json.sig"):
        shutil.copy(owner / name, tmp_path / name)
    return tmp_path, ("--trust", owner / "key.pub")


def test_what_was_sent_as_it_was_signed_holds_with_its_table(sent):
    folder, trust = sent
    shown = said("verify", folder / "out.csv", *trust)
    assert (
        f"{AS_WRITTEN}, signed by the trusted key {key_name(KEY.public_key())}, and so are the checksums" in shown
    )
    assert "The card holds." in shown
    assert "what the signed card says is true" in shown
    assert "whoever that is" in said("verify", folder / "out.csv")
    card, beside = (folder / f"out.csv.card.json{end}" for end in ("", ".sig"))
    elsewhere = beside.rename(folder / "elsewhere")
    assert AS_WRITTEN in said("verify", card, "--signature", elsewhere, *trust)
    assert AS_WRITTEN not in said("verify", card)
    assert "is not signed" in said("verify", card, *trust, code=4)


def test_another_table_with_the_card_that_fits_it_is_found(sent, owner):
    folder, trust = sent
    shutil.copy(owner / "other.csv", folder / "out.csv")
    assert "✗ file" in said("verify", folder / "out.csv", *trust, code=4)
    content = json.loads((owner / "other.csv.card.json").read_text())
    content["file"]["name"] = "out.csv"
    (folder / "out.csv.card.json").write_text(forged(content))
    shown = said("verify", folder / "out.csv", *trust, code=4)
    assert "✓ file" in shown
    assert "✗ signature" in shown
    run("verify", folder / "out.csv", code=4)  # a signature that does not fit is found without any trust
    (folder / "out.csv.card.json.sig").unlink()
    assert AS_WRITTEN not in said("verify", folder / "out.csv")


@pytest.mark.parametrize(
    "trick",
    [
        card("model", cost={"epsilon": 0.1, "delta": 0.0}),
        TEXT.replace("{", '{"version":2,', 1),
        TEXT.replace("1.0", "NaN", 1),
        TEXT.replace("1.0", "1e999", 1),
        TEXT.replace("1.0", "9" * 5000, 1),
    ],
)
def test_a_signature_makes_no_card_true(desk, trick):
    (desk / "card.json").write_text(trick)
    (desk / "card.json.sig").write_text(signature(trick, KEY))
    shown = said("verify", desk / "card.json", "--trust", desk / "key.pub", code=4)
    assert "✓ signature" in shown
    assert "does NOT hold" in shown


WHAT = {"privatize": ("out.csv", "--mechanism", "two-point"), "fit": ("model",)}


@pytest.mark.parametrize("command", WHAT)
def test_what_is_replaced_loses_its_old_signature(owner, tmp_path, command):
    name, *more = WHAT[command]
    given = ("-o", tmp_path / name, "--label", "price", "--bounds", 0, 5, "--epsilon", 4, *more)
    trust = ("--trust", owner / "key.pub")
    run(command, owner / "in.csv", *given)
    beside = tmp_path / ("model/card.json" if command == "fit" else "out.csv.card.json")
    beside.with_name(f"{beside.name}.sig").write_text(signature(beside.read_text(), KEY))
    assert AS_WRITTEN in said("verify", tmp_path / name, *trust)
    run(command, owner / "in.csv", *given, "--force")
    assert "is not signed" in said("verify", tmp_path / name, *trust, code=4)
    assert not list(tmp_path.rglob("*.sig"))
