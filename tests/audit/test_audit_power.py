"""What an audit could have shown: stated from exact counts, and held against audits that are run."""

import math

import numpy as np
import pytest
from scipy import stats

import labeldp as ldp
from broken import coin
from helpers import FALSE_ALARM, mechanisms, seeded
from labeldp.audit import bounds, standard_lenses
from labeldp.audit.events import QuantileLens
from labeldp.audit.power import sharper_channel
from labeldp.audit.run import default_labels

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

ENDS = (0.0, 1.0)


def test_clopper_and_pearson_as_scipy_has_them():
    for hits, trials in ((0, 50), (1, 50), (20, 50), (49, 50), (50, 50)):
        exact = stats.binomtest(hits, trials).proportion_ci(0.98, method="exact")
        assert math.isclose(float(bounds.share_at_least(hits, trials, 0.01)), exact.low, rel_tol=1e-9)
        assert math.isclose(float(bounds.share_at_most(hits, trials, 0.01)), exact.high, rel_tol=1e-9)


@pytest.mark.parametrize(("q", "delta"), [(None, 0.0), (0.2, 0.0), (0.05, 0.0), (0.2, 0.02)])
def test_a_violation_that_could_have_shown_does_show_and_one_half_as_far_rarely_does(q, delta):
    """100 audits each. At `showable` 80 % convict, and a little less where an audit errs in its choice of event.

    Fewer than 58 of 100 happens once in a million.
    """
    claim, samples = 1.0, 8000
    level = 1e-6 / 2  # two directions, one lens
    if q is None:
        least, q = bounds.best_case(samples // 2, claim, delta, level)
    else:
        least = float(bounds.showable(q, samples // 2, claim, delta, level))

    def convictions(epsilon):
        return sum(
            ldp.audit(
                coin(math.exp(epsilon) * q + delta, q, seed),
                labels=ENDS,
                epsilon=claim,
                delta=delta,
                samples=samples,
                lenses=[QuantileLens()],
            ).convicted
            for seed in range(100)
        )

    assert claim < least < 2.0
    assert convictions(least) >= stats.binom.ppf(FALSE_ALARM, 100, bounds.POWER)
    assert convictions((claim + least) / 2) < 50
    assert convictions(claim) == 0


def test_the_power_of_an_event_is_what_counts_drawn_at_random_have_and_no_more():
    """200,000 pairs of counts each: six standard deviations are 0.0067 at most. Blocks cost less than 0.04."""
    rng = np.random.default_rng(9)
    for p, q, delta in ((0.8, 0.24, 0.0), (0.5, 0.13, 0.01), (0.06, 0.003, 0.0), (0.27, 0.1, 0.0)):
        hits, others = (rng.binomial(2000, share, 200_000) for share in (p, q))
        often = float(np.mean(bounds.loss_at_least(hits, others, 2000, delta, 1e-6) > 1.0))
        stated = float(bounds.power(p, q, 2000, 1.0, delta, 1e-6))
        assert often - 0.04 - 0.0067 < stated < often + 0.0067


@pytest.mark.parametrize("name", ["rp", "laplace", "gaussian", "unbiased"])
def test_a_mechanism_built_for_what_could_have_shown_is_convicted(name):
    """Twenty audits at what was stated, and twenty half as far above the claim, seeds fixed.

    Fewer than the quantiles of 0.8, or more than those of 0.5, happen once in a million. The best case over all
    events convicts Laplace rarely and Gaussian never: that is the twin.
    """
    mechanism, samples, audits = mechanisms(1.0)[name], 8000, 20
    stated = ldp.audit(mechanism, samples=samples, random_state=seeded(0))

    def convictions(epsilon):
        channel = sharper_channel(mechanism, epsilon)
        assert math.isclose(channel.verify().epsilon, epsilon, rel_tol=1e-3)
        words = seeded(1)

        def randomize(y):
            out = np.empty(y.size)
            channel.sample(y, words, out)
            return out

        return sum(
            ldp.audit(
                randomize,
                labels=default_labels(mechanism),
                epsilon=stated.limit,
                delta=stated.delta,
                samples=samples,
                # the lens of the rehearsal, and the level that it had among all lenses
                confidence=1 - (1 - stated.confidence) / len(standard_lenses()),
                lenses=[QuantileLens()],
            ).convicted
            for _ in range(audits)
        )

    assert 1.0 < stated.best_case <= stated.showable * 1.005
    least = stats.binom.ppf(FALSE_ALARM, audits, bounds.POWER)
    assert convictions(stated.showable) >= least
    assert convictions((1 + stated.showable) / 2) <= stats.binom.isf(FALSE_ALARM, audits, 0.5)
    if name in ("laplace", "gaussian"):
        assert convictions(stated.best_case) < least


def test_an_acquittal_states_what_could_have_shown_and_for_whom():
    result = ldp.audit(coin(0.5, 0.2, 1), labels=ENDS, epsilon=1.0, samples=8000)
    level = (1 - result.confidence) / len(result.tested)
    assert result.showable is None
    assert result.best_case == bounds.best_case(4000, 1.0, 0.0, level)[0]
    assert f"at best an epsilon of {result.best_case:.4g} could have shown" in result.summary()
    result = ldp.audit(mechanisms(1.0)["two-point"], samples=8000)
    assert f"built for epsilon {result.showable:.4g}, would be convicted with probability 0.8" in result.summary()


def test_an_audit_that_could_have_shown_nothing_says_so():
    alike = ldp.audit(mechanisms(1.0)["laplace"], labels=(0.2, 0.21), samples=4000)
    assert math.isinf(alike.showable)
    assert "no violation of this mechanism could have shown" in alike.summary()
    few = ldp.audit(coin(0.9, 0.9, 1), labels=ENDS, epsilon=9.0, samples=100)
    assert math.isinf(few.best_case)
    assert "no violation could have shown" in few.summary()


def test_more_samples_show_more():
    seen = [ldp.audit(mechanisms(1.0)["rp"], samples=n, random_state=seeded(1)) for n in (2000, 20_000, 200_000)]
    assert seen[0].showable > seen[1].showable > seen[2].showable > 1.0
    assert seen[0].best_case > seen[1].best_case > seen[2].best_case > 1.0
    assert seen[0].epsilon < seen[1].epsilon < seen[2].epsilon <= seen[2].proven
