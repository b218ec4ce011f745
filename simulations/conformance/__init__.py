"""A conformance kit: any store must answer every command as the pure store does.

    from unswept.simulations.conformance import conformance_case

    def make_store(clock):
        return MyStore("some://url", clock=clock)  # empty, and reads its store time from clock()

    TestMyStore = conformance_case(make_store)

pytest and unittest both run the case. It drives the store in lockstep with `MemoryStore`, under one
store clock that jumps to the edges of deadlines, and back: first on a tour, every command in every
situation of a job; then through drawn histories of many jobs. The rules:

* every reply must equal the pure store's, and so must each job that was meant, as it then stands
  (on the tour, many jobs come to a situation in the same way: the first is looked at after every
  step, the others once they are there);
* the laws that one history can show are checked on what the store itself says: leases are
  well-formed, epochs and beats never decrease, the first cancel request stays (L7), a terminal job
  never changes until it is evicted (L4), and each change of status or epoch leaves exactly one
  event (L5);
* at the end of each history all that can be read must be equal: events, output, requests, suspects;
* a run that did not meet every outcome in `TOUR` and `SEARCH` fails too: a rule that never ran
  shows nothing.

One thread asks, so no row is ever locked: what happens when commands meet is not covered here.

A store that fails shows the fewest commands that lead there. Keep them as an ordinary test with
`replay`. To see that the kit would notice, plant a fault in a store and ask `refute`.
"""

from unswept.simulations.conformance.asking import ASKS
from unswept.simulations.conformance.case import (
    STEPS,
    conformance_case,
    effort,
    refute,
    require,
    search,
)
from unswept.simulations.conformance.coverage import (
    SEARCH,
    TOUR,
    Coverage,
    edges,
    named_jobs,
    outcomes,
)
from unswept.simulations.conformance.histories import Drawer, history
from unswept.simulations.conformance.lockstep import Lockstep, broken_laws, replay, short, shortened
from unswept.simulations.conformance.sights import CONSUMERS, INSTANCES, JOB_IDS, PARTITIONS
from unswept.simulations.conformance.stores import (
    Clock,
    ClosableStore,
    History,
    MakeStore,
    NonconformanceError,
    ShortfallError,
)
from unswept.simulations.conformance.tours import probes, situations, tour

__all__ = [
    "ASKS",
    "CONSUMERS",
    "INSTANCES",
    "JOB_IDS",
    "PARTITIONS",
    "SEARCH",
    "STEPS",
    "TOUR",
    "Clock",
    "ClosableStore",
    "Coverage",
    "Drawer",
    "History",
    "Lockstep",
    "MakeStore",
    "NonconformanceError",
    "ShortfallError",
    "broken_laws",
    "conformance_case",
    "edges",
    "effort",
    "history",
    "named_jobs",
    "outcomes",
    "probes",
    "refute",
    "replay",
    "require",
    "search",
    "short",
    "shortened",
    "situations",
    "tour",
]
