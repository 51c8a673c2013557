"""Tables side by side: every form has the same figures, and says what all of them cost."""

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import labeldp as ldp
from helpers import seeded
from labeldp.app.regression import write_card_table
from labeldp.app.report import render_report
from labeldp.errors import DataError
from labeldp.inference import RegressionTable
from labeldp.inference.design import MAX_NAME


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age & more": rng.normal(size=3000), "town": rng.choice(["Bath", "York_1"], 3000)})
    yes = rng.random(3000) < 1 / (1 + np.exp(-2 * frame["age & more"].to_numpy()))
    moments = ldp.private_moments(
        frame,
        yes,
        epsilon=2.0,
        bounds=(0, 1),
        on="`age & more`*C(town)",
        label="em_ployed",
        random_state=seeded(0),
    )
    return [moments.logit("`age & more`"), moments.logit(), moments.ols("C(town)")]


def test_every_form_has_the_same_cells(tables):
    found = ldp.side_by_side(*tables, names=["one", "two", "three"], stars=True)
    header, *rows = found.cells
    assert header == ["", "one", "two", "three"]
    assert [row[0] for row in rows[::2]][:4] == tables[1].names
    assert rows[2][1].endswith("***")
    assert rows[2][3] == ""
    lines = list(csv.reader(io.StringIO(found.to_csv())))
    assert lines == [[cell.replace("−", "-") for cell in row] for row in found.cells] != found.cells
    np.testing.assert_array_equal(found.to_frame().to_numpy(), [row[1:] for row in rows])
    page = ElementTree.fromstring(found.to_html())  # noqa: S314 (it is our own)
    assert [[cell.text or "" for cell in line] for line in page.iter("tr")] == found.cells
    for row in found.cells:
        assert all(cell in str(found) for cell in row)


def test_latex_has_whole_rows_and_no_bare_special_characters(tables):
    latex = ldp.side_by_side(*tables, stars=True).to_latex(caption="Work & pay", label="tab:work")
    body = latex.split(r"\midrule", 1)[1].split(r"\bottomrule")[0].replace(r"\midrule", "")
    lines = [line for line in body.splitlines() if line]
    assert all(line.endswith(r"\\") for line in lines)
    for line in lines:
        cells = re.split(r" & ", line)
        assert len(cells) == 4
        assert line.count("{") == line.count("}")
    bare = re.sub(r"\\[&%$#_{}]|\$[^$]*\$", "", "".join(lines).replace(" & ", "").replace(r"\\", ""))
    assert not set(bare) & set("&%$#_{}~^")
    assert latex.count(r"\begin{tabular}{lccc}") == latex.count(r"\end{tabular}") == 1


def test_ratios_have_intervals_and_linear_models_have_none(tables):
    found = ldp.side_by_side(*tables[:2], ratios=True)
    low, high = np.exp(tables[0].conf_int().iloc[1])
    text = found.cells[4][1]
    assert [float(part) for part in text.strip("()").split(" to ")] == pytest.approx([low, high], rel=0.01)
    with pytest.raises(ldp.LabelDPError, match="ratios"):
        ldp.side_by_side(*tables, ratios=True)
    with pytest.raises(ldp.LabelDPError, match="names"):
        ldp.side_by_side(*tables, names=["one"])


def test_the_cost_is_that_of_all_releases_and_several_rows_of_a_person_are_in_the_title():
    X = np.random.default_rng(1).normal(size=(1500, 2))
    moments = [
        ldp.private_moments(X, X[:, 0] > np.sin(9 * X[:, 1]), epsilon=0.5, bounds=(0, 1), rows_per_person=people)
        for people in (1, 4)
    ]
    one, other = moments[0].ols("x1"), moments[1].ols()
    assert "one release, and cost ε = 0.5 for one label" in " ".join(
        str(ldp.side_by_side(one, moments[0].ols())).split()
    )
    loaded = RegressionTable.from_card(one.to_card())
    assert "one release, and cost ε = 0.5 for" in " ".join(str(ldp.side_by_side(loaded, one)).split())
    both = str(ldp.side_by_side(one, other))
    assert "Together the columns cost ε = 2.5 for one person" in " ".join(both.split())
    assert "independent rows" in both
    assert "independent rows" in other.summary().splitlines()[0]
    assert "independent rows" in other.to_card()
    assert "estimated for equal variances, as if rows of a person were not alike." in " ".join(
        other.summary().split()
    )
    assert "independent rows" not in one.summary()


def test_a_table_that_is_loaded_from_its_card_prints_the_same(tables, tmp_path):
    table = tables[1]
    table.save(tmp_path / "table.json")
    again = RegressionTable.load(tmp_path / "table.json")
    for show in (
        RegressionTable.summary,
        RegressionTable.to_latex,
        RegressionTable.to_html,
        RegressionTable.to_csv,
        RegressionTable.cells,
        lambda table: str(ldp.side_by_side(table, stars=True)),
        lambda table: str(ldp.side_by_side(table, ratios=True)),
    ):
        assert show(again) == show(table)
    assert again.to_frame().equals(table.to_frame())
    np.testing.assert_allclose(again.conf_int(), table.conf_int(), rtol=1e-12)
    assert again.plot().get_xscale() == "log"
    for missing in (
        again.cov_params,
        again.margins,
        lambda: again.wald_test("x1 = 0"),
        lambda: again.conf_int(0.1),
    ):
        with pytest.raises(ldp.LabelDPError, match="card"):
            missing()
    (tmp_path / "mechanism.json").write_text(ldp.TwoPoint(bounds=(0, 3), epsilon=1.0).to_json())
    with pytest.raises(ldp.LabelDPError, match="not that of a regression"):
        RegressionTable.load(tmp_path / "mechanism.json")


ODD = [
    "年齢",
    "a_b%c$d&e#f{g}~^\\",
    "=1+1",
    "<b>x</b>",
    "two\nlines",
    "nul\0x",
    "\u202eevil",
    "\x0bvt",
    "[x]",
    "*s",
    "C(x)",
]


@pytest.mark.parametrize("family", ["ols", "logit", "poisson"])
def test_a_card_of_any_names_and_units_is_read_again_after_the_charge(family):
    """Coefficients of a column in a tiny unit have no finite exponential."""
    rng = np.random.default_rng(0)
    long = "x" * MAX_NAME
    frame = pd.DataFrame({name: rng.normal(size=900) for name in [*ODD, long]} | {"tiny": 1e-60 * rng.random(900)})
    frame["cat"] = rng.choice(ODD, 900)
    labels = (rng.random(900) < 0.5) * 1.0
    formulas = [" + ".join(f"`{name}`" for name in chosen) for chosen in (ODD[:1], frame.columns)]
    given = {"epsilon": 20.0, "bounds": (0, 1), "on": formulas, "label": "ω|ε", "random_state": seeded(0)}
    moments = ldp.private_moments(frame, labels, family=family, **given)
    tables = [getattr(moments, family)(formula) for formula in formulas]
    card = tables[-1].to_card(side_by_side=ldp.side_by_side(*tables).cells)
    assert RegressionTable.from_card(card).names == tables[-1].names
    for ending in (".csv", ".tex", ".txt"):
        assert "年齢" in write_card_table(card, ending)
    assert "年齢" in render_report(card)
    for column in (
        frame.rename(columns={long: f"{long}x"}),
        frame.assign(cat=frame["cat"].replace("[x]", long + "x")),
    ):
        with pytest.raises(DataError, match="500 characters"):
            ldp.private_moments(
                column, labels, **given | {"on": " + ".join(f"`{name}`" for name in column.columns)}
            )


def test_a_release_states_its_cost_and_has_a_card_under_the_same_names_whatever_it_is():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    y, how = np.clip(2 + X[:, 0], 0, 5), {"epsilon": 1.0, "bounds": (0, 5)}
    moments = ldp.private_moments(X, y, **how)
    for release in (ldp.privatize(y, **how), ldp.privatize(y, X=X, **how), moments, moments.ols()):
        assert release.cost == release.terms.cost == ldp.Budget(1.0)
        assert "ε = 1" in release.summary()
        assert ldp.verify_card(release.to_card())
