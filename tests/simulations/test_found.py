"""What campaigns have found, in the real design or in its judges, each in the fewest steps."""

from __future__ import annotations

import pytest

from unswept.adapters.urls import SimulatedStore
from unswept.core import commands as c
from unswept.core.memory import MemoryStore
from unswept.core.policy import LeasePolicy
from unswept.core.replies import Claimed
from unswept.core.units import StoreMs
from unswept.simulations.campaign import run_seed
from unswept.simulations.run import Settings

TERMS = LeasePolicy().terms()
PAST_GC = StoreMs(LeasePolicy().instance_gc_ms + 1)


@pytest.mark.parametrize(
    "goes",
    [c.Deregister("r4"), c.ForgetInstances((("r4", StoreMs(0)),), LeasePolicy().instance_gc_ms)],
    ids=["deregistered", "silent"],
)
def test_a_claim_number_counts_once_whatever_comes_late(goes: c.Command[object]) -> None:
    """Seed 345 of `unswept simulate --faults all`: Register and Claim come a second time, minutes
    after their instance is gone. (F1)"""
    now = StoreMs(0)
    store = MemoryStore(lambda: now)
    register, claim = c.Register("r4"), c.Claim("r4", 41, TERMS)
    store.execute(register)
    store.execute(claim)
    now = PAST_GC
    store.execute(goes)
    assert store.execute(c.ListInstances()).instances == ()
    store.execute(register)
    store.execute(c.Enqueue("q32"))
    reply = store.execute(claim)
    assert isinstance(reply, Claimed)
    assert (reply.grants, reply.repeated) == ((), True)


def test_a_window_of_many_beats_is_judged_as_a_whole() -> None:
    """Seed 639 of `unswept simulate --faults all`: a guest that beats twice a second had stood by a
    suspect for five minutes, and was accused of a gap: only its last 400 beats were remembered.
    (L12a)"""
    outcome = run_seed(Settings(seed=639), SimulatedStore("memory:"))
    assert outcome.violation is None
    assert outcome.faults["mixed-policies"]
