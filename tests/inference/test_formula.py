"""Formulas: what they accept, the columns that they make, and what they refuse."""

import numpy as np
import pyarrow as pa
import pytest

import labeldp as ldp
from labeldp.inference.formula import MAX_LEVELS, Formula

PEOPLE = pa.table(
    {
        "age": [20, 30, 50, 40],
        "unit price": [1.5, 2.5, 0.5, 1.0],
        "region": pa.array(["west", "east", "west", "north"]).dictionary_encode(),
        "code": [10, 9, 10, 11],
        "member": [True, False, True, True],
        "gaps": [1.0, None, 2.0, 3.0],
        "wide": ["a", "b", None, "c"],
    }
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("age", ["age"]),
        ("age + age**2 + member", ["age", "age**2", "member"]),
        ("`unit price` + C(code)", ["unit price", "code[10]", "code[11]"]),
        ("region", ["region[north]", "region[west]"]),  # text is a category without being asked
        ("C(region, ref='west')", ["region[east]", "region[north]"]),
        ('age + C(region, ref="west") + age:C(region)', None),
        (" age+region+region : age ", None),
        ("age*member + code", ["age", "member", "age:member", "code"]),
        ("age + age*region", ["age", "region[north]", "region[west]", "age:region[north]", "age:region[west]"]),
        ("age*member*code", ["age", "member", "code", "age:member", "age:code", "member:code", "age:member:code"]),
        (
            "log(age) + sqrt(`unit price`)*member",
            ["log(age)", "sqrt(unit price)", "member", "sqrt(unit price):member"],
        ),
    ],
)
def test_names_of_coefficients_say_what_they_are(text, names):
    coefficients = Formula.parse(text).fit(PEOPLE)
    if names is not None:
        assert coefficients.names == names
    assert coefficients.transform(PEOPLE).shape == (4, len(coefficients.names))


def test_columns_are_those_that_numpy_computes():
    coefficients = Formula.parse('age + age**2 + C(region, ref="west") + C(region):age').fit(PEOPLE)
    assert coefficients.levels == {"region": ["west", "east", "north"]}
    age, east, north = np.array([20.0, 30, 50, 40]), np.array([0, 1, 0, 0]), np.array([0, 0, 0, 1])
    expected = np.column_stack([age, age**2, east, north, east * age, north * age])
    np.testing.assert_array_equal(coefficients.transform(PEOPLE), expected)
    assert coefficients.names[-1] == "region[north]:age"


def test_functions_are_those_of_numpy_and_refuse_values_that_they_are_not_defined_for():
    found = Formula.parse("log(age)*member + sqrt(code)").fit(PEOPLE).transform(PEOPLE)
    age, member, code = np.array([20.0, 30, 50, 40]), np.array([1.0, 0, 1, 1]), np.array([10.0, 9, 10, 11])
    expected = np.column_stack([np.log(age), member, np.log(age) * member, np.sqrt(code)])
    np.testing.assert_allclose(found, expected[:, [0, 1, 2, 3]])
    for text, value in (("log(age)", 0), ("sqrt(age)", -1)):
        with pytest.raises(ldp.LabelDPError, match=r"needs values .* 'age' has"):
            Formula.parse(text).transform(pa.table({"age": [1, value]}))


def test_the_label_may_stand_in_front_and_no_other():
    assert Formula.parse("Pay ~ age", label="pay").names == ["age"]
    assert Formula.parse(" `net pay` ~ age", label="net pay").names == ["age"]
    for text in ("wage ~ age", "pay ~ pay + age", "pay ~ age ~ code"):
        with pytest.raises(ldp.LabelDPError):
            Formula.parse(text, label="pay")
    with pytest.raises(ldp.LabelDPError, match="pass the logarithm as the label"):
        Formula.parse("log(pay) ~ age", label="pay")


def test_other_tables_are_coded_in_the_same_way():
    coefficients = Formula.parse("age + region").fit(PEOPLE)
    other = pa.table({"region": ["north"], "age": [1.0], "more": [3]})
    np.testing.assert_array_equal(coefficients.transform(other), [[1.0, 1.0, 0.0]])
    with pytest.raises(ldp.LabelDPError, match="'south'"):
        coefficients.transform(pa.table({"region": ["south"], "age": [1.0]}))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "age +",
            "+ age",
            "age age",
            "age *",
            "age * * region",
            "age - 1",
            "0 + age",
            "age**5",
            "age**",
        ),
        *(
            "I(age**2)",
            "age^2",
            "pay ~ age",
            "C(age)*code**",
            "exp(age)",
            "log(region)",
            "log(age)**2",
            "log(log(age))",
            "C(age):log(code)",
            "code + age:code + age + age:code",
        ),
        *("log(age", "C(age", "C(region, 'west')", "C(region, ref=south)", "age:region", "age + age"),
        *("region**2", "`unit price", "unit price", "age; import os", "__import__('os')", "age[0]", "age.real"),
        "C(region, ref='west') + C(region, ref='east'):age + age",
    ],
)
def test_anything_else_is_refused_by_its_option(text):
    with pytest.raises(ldp.LabelDPError) as caught:
        Formula.parse(text).fit(PEOPLE)
    assert caught.value.option == "on"


@pytest.mark.parametrize("name", ["pay", "PAY", "`pay`", "age + C(pay)", "age + pay + pay:age"])
def test_the_label_is_refused(name):
    with pytest.raises(ldp.LabelDPError, match="private") as caught:
        Formula.parse(name, label="pay")
    assert caught.value.option == "on"


def test_a_column_that_names_every_row_is_not_a_category():
    people = pa.table({"id": [str(k) for k in range(MAX_LEVELS + 2)]})
    with pytest.raises(ldp.LabelDPError, match="leave it out"):
        Formula.parse("id").fit(people)
