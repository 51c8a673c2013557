"""``labeldp regress``: a table of coefficients from a file, with its card; bad input costs nothing."""

import csv
import json
import sys

import numpy as np
import pytest

import labeldp as ldp
from command_line import files_in, said

WHAT = ("--label", "income", "--bounds", 0, 100, "--epsilon", 2)
FORMULA = 'schooling + C(region, ref="east")'


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    rng = np.random.default_rng(0)
    schooling, region = rng.integers(8, 20, 3000), rng.choice(["north", "east"], 3000)
    income = np.clip(10 + 3 * schooling + 8 * (region == "north") + rng.normal(0, 8, 3000), 0, 100)
    path = tmp_path_factory.mktemp("survey") / "survey.csv"
    lines = [f"{s},{r},{y:.2f}" for s, r, y in zip(schooling, region, income, strict=True)]
    path.write_text("\n".join(["schooling,region,income", *lines]) + "\n")
    return path


@pytest.mark.parametrize("suffix", [".html", ".csv", ".tex", ".txt"])
def test_the_table_and_its_card_say_the_same_and_a_changed_table_is_not_valid(survey, tmp_path, suffix):
    out, book = tmp_path / f"table{suffix}", tmp_path / "book.db"
    shown = said("regress", survey, *WHAT, "--on", FORMULA, "-o", out, "--ledger", book, "--limit", 3)
    card = tmp_path / f"{out.name}.card.json"
    for words in ("region[north]", "region = east", "ε = 1 left", card.name):
        assert words in shown
    assert "region[north]" in out.read_text(encoding="utf-8").replace(r"\_", "_")
    assert ldp.Ledger.open(book).total == ldp.Budget(2.0)
    for file in (card, out):
        verified = said("verify", file)
        assert "Valid." in verified
        assert f"{out.name} is, to the byte" in verified
    assert files_in(tmp_path) == sorted(["book.db", out.name, card.name])
    digits = f"{json.loads(card.read_text())['regression']['params'][0]:.4f}"[:2]
    out.write_text(out.read_text(encoding="utf-8").replace(digits, f"9{digits}"), encoding="utf-8")
    assert "NOT valid" in said("verify", out, code=4)


def test_figures_of_the_file_are_those_of_the_function_in_full_and_as_private_as_the_source(survey, tmp_path):
    survey.chmod(0o600)
    said("regress", survey, *WHAT, "--on", FORMULA, "-o", tmp_path / "table.csv")
    head, *rows = csv.reader((tmp_path / "table.csv").read_text(encoding="utf-8").splitlines())
    regression = ldp.accounts.Card.parse((tmp_path / "table.csv.card.json").read_text()).content["regression"]
    assert head[1:3] == ["coef", "std err"]
    modes = {(tmp_path / name).stat().st_mode & 0o777 for name in ("table.csv", "table.csv.card.json")}
    assert modes == {0o600} or sys.platform == "win32"
    assert [row[0] for row in rows] == regression["names"]
    assert [float(row[1]) for row in rows] == regression["params"]


def test_rows_with_gaps_in_a_column_that_is_used_are_named_or_left_out(survey, tmp_path):
    head, *rows = survey.read_text().splitlines()
    gaps = [f",{row.partition(',')[2]}" if k % 100 == 0 else row for k, row in enumerate(rows)]
    (tmp_path / "gaps.csv").write_text("\n".join([head, *gaps]) + "\n")
    given = ("regress", tmp_path / "gaps.csv", *WHAT, "-o", tmp_path / "table.csv", "--on")
    refused = said(*given, "schooling", code=2)
    assert "'schooling'" in refused
    assert "--missing drop" in refused
    assert "2,970" in said(*given, "schooling", "--missing", "drop")
    assert "3,000" in said(*given, "C(region)", "--force")


@pytest.mark.parametrize("term", ["town", "C(town)"])
def test_empty_text_is_a_gap_and_no_category(tmp_path, term):
    towns = ["York", "", "Bath", "York"] * 500
    lines = [f"{town},{20 + 10 * (town == 'York') + k % 3}" for k, town in enumerate(towns)]
    (tmp_path / "in.csv").write_text("\n".join(["town,income", *lines]) + "\n")
    given = ("regress", tmp_path / "in.csv", *WHAT, "-o", tmp_path / "table.csv", "--on", term)
    assert "'town'" in said(*given, code=2)
    assert "1,500" in said(*given, "--missing", "drop")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--on", "schooling + income"], "private"),
        (["--on", "schoolin"], "schooling"),
        (["--on", "exp(schooling)"], "--on"),
        ([], "C(region)"),
        (["--on", "schooling", "-o", "table.doc"], "--out"),
        (["--on", "schooling", "--epsilon", 0.001], "--epsilon"),
        (["--on", "schooling"] * 51, "--on must be at most 50 formulas"),
        (["--on", "schooling + schooling"], "two coefficients one name"),
        (["--on", "region + C(region)"], "write C(region) in all terms"),
        (["--on", "schooling", "--on", "C(schooling)"], "write C(schooling) in all terms"),
    ],
)
def test_what_cannot_be_estimated_is_refused_before_the_charge(options, named, survey, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paid = ("--ledger", tmp_path / "book.db", "--limit", 9)
    assert named in said("regress", survey, *WHAT, "-o", tmp_path / "table.csv", *paid, *options, code=2)
    book = tmp_path / "book.db"
    assert not book.exists() or not ldp.Ledger.open(book).charges
    assert not [name for name in files_in(tmp_path) if name.startswith("table")]


def test_several_formulas_and_files_cost_one_charge_and_each_file_has_its_card(survey, tmp_path):
    book, files = tmp_path / "book.db", [tmp_path / f"table.{ending}" for ending in ("html", "csv", "tex", "txt")]
    outputs = [word for file in files for word in ("-o", file)]
    formulas = ("--on", "schooling", "--on", "income ~ log(schooling) + schooling*C(region)")
    shown = said("regress", survey, *WHAT, *formulas, *outputs, "--ledger", book, "--limit", 3)
    assert "All columns follow from one release" in " ".join(shown.split())
    assert ldp.Ledger.open(book).total == ldp.Budget(2.0)
    for file in files:
        assert "log(schooling)" in file.read_text(encoding="utf-8")
        assert "Valid." in said("verify", f"{file}.card.json")
    assert "The last of them in words" in files[0].read_text(encoding="utf-8")
    card = json.loads((tmp_path / "table.csv.card.json").read_text())
    cells = [[name, *(text.replace("−", "-") for text in row)] for name, *row in card["side_by_side"]]
    assert cells == list(csv.reader(files[1].read_text(encoding="utf-8").splitlines()))
    for file in files[1:]:
        again = tmp_path / f"again{file.suffix}"
        said("report", f"{files[0]}.card.json", "-o", again)
        assert again.read_bytes() == file.read_bytes()
    assert ".tex" in said("report", f"{files[0]}.card.json", "-o", tmp_path / "table.docx", code=2)


def test_a_report_of_several_regressions_is_not_named_after_the_mean_alone(survey, tmp_path):
    out = tmp_path / "table.html"
    for formulas, title in ((("1",), "The mean of income"), (("schooling", "1"), "A regression table of income")):
        options = [word for formula in formulas for word in ("--on", formula)]
        said("regress", survey, *WHAT, *options, "-o", out, "--force")
        assert f"<title>{title}" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("family", ["logit", "poisson"])
def test_a_family_without_a_solution_leaves_a_linear_table_that_says_so(family, tmp_path):
    source, out = tmp_path / "survey.csv", tmp_path / "table.txt"
    source.write_text("\n".join(["x,y", *(f"{k},0" for k in range(60))]) + "\n")
    tables = []
    for _ in range(12):  # noise has either sign: for a mean of 0 half of the sums have no solution
        said(
            "regress",
            source,
            "--label",
            "y",
            "--bounds",
            0,
            1,
            "--epsilon",
            3,
            "--family",
            family,
            "-o",
            out,
            "--force",
        )
        tables.append(out.read_text())
        assert "Valid." in said("verify", out)
    assert any("A linear regression, because another was impossible." in " ".join(one.split()) for one in tables)
    assert any("In Python," in one for one in tables)  # a shell keeps no sums


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--family", "logit"), "(0, 1)"),
        (("--family", "probit"), "--family"),
        (("-o", "table.pdf"), "--out"),
        (("--on", "wage ~ schooling"), "names the label"),
    ],
)
def test_wrong_families_files_and_formulas_cost_nothing(survey, tmp_path, options, message):
    book = tmp_path / "book.db"
    shown = said("regress", survey, *WHAT, "-o", tmp_path / "t.txt", *options, "--ledger", book, code=2)
    assert message in " ".join(shown.split())
    assert not book.exists()
