"""One job's row in a few words, for people who look at a store or at a run."""

from __future__ import annotations

from unswept.core.job import Job
from unswept.core.units import StoreMs


def row_words(job: Job | None, now: StoreMs) -> list[str]:
    """A row in words; its times are told from the store's now."""
    if job is None:
        return ["no row"]
    lease = job.lease
    words = [
        lease.status.value,
        "nobody's" if lease.owner is None else f"owner {lease.owner}",
        f"epoch {lease.epoch}",
        f"beats {lease.beats}",
    ]
    for name, at in (
        ("deadline", lease.deadline),
        ("cancel asked", lease.cancel_requested_at),
        ("delayed", lease.delayed_at),
        ("not before", job.not_before),
    ):
        if at is not None:
            words.append(f"{name} {(at - now) / 1000:+.3f} s")
    if lease.ttl_ms is not None:
        words.append(f"ttl {lease.ttl_ms} ms")
    if job.max_attempts is not None:
        words.append(f"attempt {job.attempts} of {job.max_attempts}")
    words.append(f"on orphan: {job.on_orphan.value}")
    return words
