"""Releases of small tables in the working folder, and what is refused there."""

import os

import pytest

import labeldp as ldp


def release(source, out="out.csv", **options):
    """Release the labels "price" with the mechanism that is designed fastest."""
    fixed = {"label": "price", "bounds": (0, 5), "epsilon": 1, "mechanism": "two-point"}
    return ldp.privatize_file(source, out, **{**fixed, **options})


class Meanwhile(ldp.Ledger):
    """Does something after labels are counted, and before they are released."""

    def charge_all(self, charges, scope=None):
        self.act()
        return super().charge_all(charges, scope)


def meanwhile(act):
    ledger = Meanwhile()
    ledger.act = act
    return ledger


def refused(source, out="out.csv", error=ldp.LabelDPError, **options):
    """Return the error; nothing is spent, and nothing is left."""
    before, ledger = sorted(os.listdir()), ldp.Ledger()
    with pytest.raises(error) as caught:
        release(source, out, ledger=ledger, **options)
    assert ledger.charges == ()
    assert sorted(os.listdir()) == before
    return caught.value
