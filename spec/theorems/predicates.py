"""The laws' own predicates, for claims about what a command, a send or a step of work comes to."""

from __future__ import annotations

from unswept.spec.laws import LAWS


def kept(law_id: str, observation: object) -> bool:
    """Does no predicate of this law find an offence?"""
    found = [law.broken for law in LAWS if law.id == law_id and law.broken is not None]
    return bool(found) and all(broken(observation) is None for broken in found)
