"""What a curator sums, held to plain loops: integer sums, the noise made for them, and which design is chosen."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from labeldp.estimators import designs as room
from labeldp.estimators import feature_table as tables
from labeldp.estimators.designs import Design, PublicGeometry, _directions, _groups, balanced_groups, choose_design
from labeldp.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise, LatticeNorm
from model_cases import small_table

STEPS, UNIT = 65_536, 4096
ROWS = 90
PRIOR = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 2.0])


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch):
    """Features come in several pieces, as those of long tables do."""
    monkeypatch.setattr(tables, "PIECE", 32)


@pytest.fixture(params=["groups", "directions"])
def design(request):
    table = small_table(ROWS)
    geometry = PublicGeometry.of(table, PRIOR)
    return _groups(table, geometry, 8) if request.param == "groups" else _directions(table, geometry, 2)


def weight(design, row, k):
    """Return a row's integer weight in a sum."""
    return int(design.group[row] == k) if design.weights is None else int(design.weights[row, k])


def sums_by_loops(design, labels, width, rows):
    """Return the sums of integers from 0 to 2^16."""
    found = [0] * design.count
    for label, row in zip(labels, rows, strict=True):
        step = min(max(round(label / width * STEPS), 0), STEPS)
        for k in range(design.count):
            found[k] += weight(design, row, k) * step
    return found


# ---- sums ---------------------------------------------------------------------------------------------


def test_sums_are_exact_and_clipped_and_add_up_from_parts(design):
    labels = np.random.default_rng(2).uniform(-1, 4, ROWS)
    labels[:4] = [-1e300, 1e300, 0.0, 3.0]
    whole = design.sums(labels, 3.0)
    assert whole.dtype == np.int64
    assert whole.tolist() == sums_by_loops(design, labels, 3.0, range(ROWS))
    order = np.random.default_rng(3).permutation(ROWS)
    parts = [design.sums(labels[rows], 3.0, rows) for rows in (order[:31], order[31:])]
    assert parts[0].tolist() == sums_by_loops(design, labels[order[:31]], 3.0, order[:31])
    assert (parts[0] + parts[1]).tolist() == whole.tolist()


def test_one_label_moves_sums_by_what_their_noise_is_made_for_and_one_label_does(design):
    table = [[weight(design, row, k) for k in range(design.count)] for row in range(ROWS)]
    epsilon, delta = Fraction(2, 7), Fraction(1, 10**5)
    if design.weights is None:
        assert [sum(row) for row in table] == [1] * ROWS, "each row is in one group"
        for given in (Fraction(0), delta):
            assert design.noise(epsilon, given) == DiscreteLaplace(STEPS / epsilon)
        return
    squared = max(sum(w * w for w in row) for row in table) * STEPS**2
    assert design.noise(epsilon) == LatticeNorm.calibrated(squared_sensitivity=squared, epsilon=epsilon)
    with_delta = design.noise(Fraction(1, 10), Fraction(1, 10))
    gaussian = {"squared_sensitivity": squared, "epsilon": Fraction(1, 10), "delta": Fraction(1, 10)}
    assert with_delta == DiscreteGaussian.calibrated(**gaussian)
    assert isinstance(design.noise(Fraction(8), Fraction(1, 10**9)), LatticeNorm), "the smaller of the two"


@pytest.mark.parametrize(("count", "kind"), [(1, LatticeNorm), (17, LatticeNorm), (18, DiscreteGaussian)])
def test_many_directions_always_get_gaussian_noise_where_delta_is_given(count, kind):
    weights = np.ones((5, count), dtype=np.int64)
    made = Design(np.zeros((count, 6), np.float32), 0.2, weights=weights, squared_norm=count)
    noise = made.noise(Fraction(20), Fraction(1, 10**200))
    assert isinstance(noise, kind)
    assert isinstance(made.noise(Fraction(20)), LatticeNorm)


class Counting(IntegerNoise):
    """Noise that is 1, 2, 3 …, of variance 7 times the number of draws."""

    def sample(self, size, source):
        return np.arange(1, size + 1)

    def variance(self, size):
        return 7.0 * size


def test_noise_is_added_to_integers_and_the_average_is_that_of_its_weights(design):
    labels, width = np.random.default_rng(4).uniform(0, 3, ROWS), 3.0
    exact = sums_by_loops(design, labels, width, range(ROWS))
    expected = []
    for k in range(design.count):
        noisy = Fraction(exact[k] + k + 1) * 3 / STEPS
        divided = noisy / int(design.sizes[k]) if design.weights is None else noisy / (UNIT * ROWS)
        expected.append(float(divided))
    for found in (
        design.noisy(design.sums(labels, width), width, Counting(), None),
        design.release(labels, width, Counting(), None),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    unit = width / STEPS / (np.mean(design.sizes) if design.weights is None else UNIT * ROWS)
    assert design.variance(Counting(), width) == pytest.approx(7 * design.count * unit**2)


def test_features_and_public_values_are_averaged_with_the_weights_of_labels(design):
    features = small_table(ROWS)._kept
    for column in range(6):
        averages = design.average(features[:, column].astype(float))
        for k in range(design.count):
            total = sum(weight(design, row, k) * float(features[row, column]) for row in range(ROWS))
            part = total / (design.sizes[k] if design.weights is None else UNIT * ROWS)
            assert averages[k] == pytest.approx(part, rel=1e-9, abs=1e-12)
            assert design.features[k, column] == pytest.approx(part, rel=1e-5, abs=1e-6)
    assert design.features.dtype == np.float32, "half the memory"
    assert design.share == pytest.approx(design.count / ROWS if design.weights is None else 1 / ROWS)


def test_statistics_are_those_of_the_averages(design):
    averages = np.linspace(-1, 2, design.count)
    seen = design.observations(averages, 0.3)
    features = design.features.astype(float)
    np.testing.assert_allclose(seen.gram, features.T @ features, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(seen.moment, features.T @ averages, rtol=1e-4, atol=1e-6)
    assert seen.square == pytest.approx(sum(a * a for a in averages))
    assert (seen.count, seen.share, seen.noise) == (design.count, design.share, 0.3)
    assert seen.moment.dtype == np.float64


# ---- groups and directions ----------------------------------------------------------------------------


def halved(places, rows, size):
    """Return groups of rows as sets, by sorting."""
    parts = round(len(rows) / size)
    if parts < 2:
        return [frozenset(rows)]
    spread = [np.var([places[row][k] for row in rows]) for k in range(len(places[0]))]
    widest = spread.index(max(spread))
    ordered = sorted(rows, key=lambda row: places[row][widest])
    cut = round(len(rows) * (parts // 2) / parts)
    return halved(places, ordered[:cut], size) + halved(places, ordered[cut:], size)


@pytest.mark.parametrize("size", [2, 7, 8, 30, 60, 61, 100])
def test_groups_are_halves_of_halves_along_the_widest_direction(size):
    places = np.random.default_rng(5).normal(size=(91, 3)) * [1.0, 2.0, 1.5]
    group = balanced_groups(places, size)
    assert sorted(set(group.tolist())) == list(range(group.max() + 1))
    found = {frozenset(np.flatnonzero(group == k).tolist()) for k in range(group.max() + 1)}
    assert found == set(halved(places.tolist(), list(range(91)), size))


def test_a_group_design_knows_its_groups():
    table = small_table(ROWS)
    geometry = PublicGeometry.of(table, PRIOR)
    made = _groups(table, geometry, 8)
    assert made.group.tolist() == balanced_groups(geometry.places, 8).tolist()
    assert made.sizes.tolist() == np.bincount(made.group).tolist()
    assert made.squared_norm == 0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_rows_far_out_weigh_no_more_than_most(count):
    table = small_table(ROWS)
    geometry = PublicGeometry.of(table, PRIOR)
    made = _directions(table, geometry, count)
    rows = [[1.0, *geometry.whitened[row, :count]] for row in range(ROWS)]
    norms = [float(np.sqrt(sum(v * v for v in row))) for row in rows]
    most = float(np.quantile(norms, 0.95))
    expected = [
        [round(v * min(1.0, most / norm) * UNIT) for v in row] for row, norm in zip(rows, norms, strict=True)
    ]
    assert made.weights.tolist() == expected
    assert made.squared_norm == max(sum(v * v for v in row) for row in expected)
    assert made.group is made.sizes is None


def test_geometry_is_that_of_the_table():
    table = small_table(ROWS)
    geometry = PublicGeometry.of(table, PRIOR)
    features = table._kept.astype(float)
    np.testing.assert_allclose(geometry.gram, features.T @ features / ROWS, rtol=1e-4, atol=1e-6)
    weighted = features[:, :-1] * np.sqrt(PRIOR[:-1])
    # All five directions are kept here: distances between rows are those of the weighted features.
    np.testing.assert_allclose(geometry.places @ geometry.places.T, weighted @ weighted.T, rtol=1e-3, atol=1e-3)
    assert geometry.gram.dtype == np.float32
    energy = (geometry.places**2).sum(axis=0)
    assert (np.diff(energy) < 0).all(), "the leading direction first"
    white = geometry.whitened
    np.testing.assert_allclose(white.T @ white / ROWS, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-12)
    centred = table.X - table.X.mean(axis=0)
    assert abs(np.corrcoef(white[:, 0], centred @ np.linalg.svd(centred)[2][0])[0, 1]) > 1 - 1e-9


def test_columns_that_say_nothing_have_no_direction():
    table = small_table(ROWS)
    table.X[:, 1] = 2 * table.X[:, 0]
    assert PublicGeometry.of(table, PRIOR).whitened.shape == (ROWS, 1)
    table.X[:] = 1.0
    assert PublicGeometry.of(table, PRIOR).whitened.shape == (ROWS, 0)


class Many:
    """Stands in for `PublicFeatures`: fifteen features of any columns."""

    block = np.repeat([0, 1, 2, 3], [4, 4, 4, 2])

    def transform(self, X):
        return np.cos(np.outer(X[:, 0], np.arange(15.0))[:, ::-1]).astype(np.float32)

    def standardised(self, X):
        return X


def test_rows_are_placed_by_twelve_directions_and_columns_that_hardly_vary_have_none():
    X = np.random.default_rng(7).normal(size=(ROWS, 3)) * [1e-5, 1e-8, 1e-11]
    geometry = PublicGeometry.of(tables.FeatureTable(Many(), X), np.full(15, 0.1))
    assert geometry.places.shape == (ROWS, 12)
    assert geometry.whitened.shape == (ROWS, 2)


def test_of_very_many_rows_every_second_one_or_so_is_looked_at(monkeypatch):
    monkeypatch.setattr(tables, "PIECE", 5000)
    table = small_table(40_000)
    some = table._kept[::2].astype(float)
    np.testing.assert_allclose(PublicGeometry.of(table, PRIOR).gram, some.T @ some / 20_000, rtol=1e-3, atol=1e-4)


# ---- the choice ---------------------------------------------------------------------------------------


def risk_by_hand(design, geometry, ask):
    """Return E‖features · (weights − posterior mean)‖² under prior, noise and what is known."""
    prior = ask["prior"]
    level = design.share * ask["rest"] + design.variance(design.noise(ask["epsilon"], ask["delta"]), ask["width"])
    precision = np.diag(1 / prior) + (0 if ask["known"] is None else ask["known"])
    precision = precision + design.features.T.astype(float) @ design.features / level
    return float(np.trace(np.linalg.inv(precision) @ geometry.gram))


@pytest.mark.parametrize("seed", range(40))
def test_the_design_of_least_risk_is_chosen(seed):
    rng = np.random.default_rng(seed)
    table = small_table(200)
    some = rng.normal(size=(6, 6))
    ask = {
        "prior": 10 ** rng.uniform(-4, 1, 6),
        "rest": 10 ** rng.uniform(-3, 0),
        "known": (some @ some.T * 10 ** rng.uniform(-2, 3)).astype(np.float32) if seed % 2 else None,
        "width": 5.0,
        "epsilon": Fraction(str(round(10 ** rng.uniform(-1.5, 1.3), 3))),
        "delta": Fraction(1, 20) if seed % 4 > 1 else Fraction(0),
    }
    geometry = PublicGeometry.of(table, ask["prior"])
    tried = [_groups(table, geometry, size) for size in (2, 4, 8, 16)]
    tried += [_directions(table, geometry, count) for count in (0, 1, 2)]
    least = min(risk_by_hand(design, geometry, ask) for design in tried)
    assert risk_by_hand(choose_design(table, geometry, **ask), geometry, ask) == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 3, 15, 17])
def test_any_number_of_rows_has_a_design(rows):
    table = small_table(rows)
    made = choose_design(
        table, PublicGeometry.of(table, PRIOR), prior=PRIOR, rest=0.05, known=None, width=5.0, epsilon=Fraction(1)
    )
    assert made.sums(np.zeros(rows), 5.0).tolist() == [0] * made.count


@pytest.fixture
def tried(monkeypatch):
    """Return the list of what is tried: ("groups", size) and ("directions", count)."""
    seen = []
    monkeypatch.setattr(room, "_groups", lambda *how: seen.append(("groups", how[2])) or _groups(*how))
    monkeypatch.setattr(room, "_directions", lambda *how: seen.append(("directions", how[2])) or _directions(*how))
    return seen


ASK = {"prior": PRIOR, "rest": 0.05, "known": None, "width": 5.0}


@pytest.mark.parametrize(
    ("rows", "epsilon", "sizes"),
    [
        (400, "20", [2, 4]),
        (400, "0.75", [8, 16, 32]),
        (400, "1.098", [4, 8, 16]),
        (400, "0.1", [16, 32]),
        (256, "0.1", [16, 32]),
        (255, "0.1", [8, 16]),
        (3, "0.5", [2]),
        (1, "20", [2]),
    ],
)
def test_the_search_begins_at_twelve_over_epsilon_with_half_and_twice_as_many(rows, epsilon, sizes, tried):
    table = small_table(rows)
    choose_design(table, PublicGeometry.of(table, PRIOR), epsilon=Fraction(epsilon), **ASK)
    assert tried[: len(sizes)] == [("groups", size) for size in sizes]
    later = [size for kind, size in tried[len(sizes) :] if kind == "groups"]
    assert all(size < sizes[0] or size > sizes[-1] for size in later), "none is made twice"
    assert all(size >= 2 and rows / size >= 8 for size in later)


@pytest.mark.parametrize(("rows", "few"), [(1198, True), (1200, False)])
def test_directions_are_tried_where_groups_are_fewer_than_600(rows, few, tried):
    table = small_table(rows)
    geometry = PublicGeometry.of(table, PRIOR)
    made = choose_design(table, geometry, epsilon=Fraction(20), **{**ASK, "rest": 50.0})
    assert (("groups", 2) in tried, made.count) == (True, rows // 2)
    assert [size for kind, size in tried if kind == "groups"] == [2, 4], "the search ends where it is best"
    assert (("directions", 0) in tried) == few


def test_more_directions_are_tried_where_delta_is_given(tried):
    table = small_table(400)
    geometry = PublicGeometry.of(table, PRIOR)
    wide = PublicGeometry(geometry.places, np.random.default_rng(6).normal(size=(400, 32)), geometry.gram)
    few = [0, 1, 2, 3, 4, 6, 8, 12, 16]
    for delta, counts in ((Fraction(0), few), (Fraction(1, 1000), [*few, 24, 32])):
        tried.clear()
        choose_design(table, wide, epsilon=Fraction(1), delta=delta, **ASK)
        assert [count for kind, count in tried if kind == "directions"] == counts
