"""The small world with an owner that dies: is its job orphaned in time? (L13)

The sweeper is steady all the while, so that the law's bound applies: from the last renewal that was
accepted, the ttl, a sweep interval, the window and two operation timeouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from unswept.core.lease import Status
from unswept.core.records import changed
from unswept.core.units import Ms
from unswept.spec.explorer.designs import Design, Mix, policy_of
from unswept.spec.explorer.happenings import What
from unswept.spec.explorer.model import SWEEPER, Kind, Message, Model, Move, State
from unswept.spec.explorer.offence import Offence
from unswept.spec.laws import BY_ID
from unswept.spec.observations import Neglect


@frozen(eq=False, slots=False)
class Watched(State):
    """A state that also says how the owner is."""

    silent: int = 0
    """Ticks since its last accepted renewal."""
    dead: bool = False
    bound: int = 0
    """Law L13's."""

    @property
    def offence(self) -> Offence | None:
        """Why a law is broken here: a live job was swept, or a dead one's was not in time."""
        if not self.dead:
            return super().offence
        if self.job.lease.status is Status.ORPHANED:
            return None
        silent, bound = Ms(self.silent), Ms(self.bound)
        broken = BY_ID["L13"].broken
        assert broken is not None
        said = broken(Neglect(self.job.id, silent, bound, SWEEPER, silent))
        return None if said is None else Offence("L13", said)


class NeglectModel(Model):
    """The transition relation where the owner may die."""

    def __init__(self, design: Design, mix: Mix) -> None:
        """The bound is that of the policy which the mix says, whatever the design does."""
        super().__init__(design, mix)
        said = policy_of(window=mix.window, sweep=mix.sweep_interval)
        self._bound = said.detection_ms()

    def first(self, owner_phase: int, rival_phase: int, pass_phase: int) -> State:
        """A state in which all is well."""
        state = super().first(owner_phase, rival_phase, pass_phase)
        fields = {name: getattr(state, name) for name in State.__annotations__}
        return Watched(**fields, silent=owner_phase, bound=self._bound)

    def moves(self, state: State) -> Iterator[Move]:
        """Everything that may happen next; a job that was swept is settled."""
        assert isinstance(state, Watched)
        if state.job.lease.status is Status.ORPHANED:
            return
        if state.left.deaths:
            left = evolve(state.left, deaths=state.left.deaths - 1)
            yield Move(What.DIES, changed(state, dead=True, left=left), 0)
        yield from super().moves(state)

    def key(self, state: State) -> tuple[Any, ...]:
        """What makes two states the same."""
        assert isinstance(state, Watched)
        return (*super().key(state), state.silent, state.dead)

    def _may_wait(self, state: State, message: Message) -> bool:
        """The bound has room for one answer that takes its time, not for a sweep that never
        arrives."""
        assert isinstance(state, Watched)
        return super()._may_wait(state, message) and not (state.dead and message.kind is Kind.SWEEP)

    def _advance(self, state: State) -> State:
        """A tick passes; a dead owner does nothing in it."""
        assert isinstance(state, Watched)
        after = super()._advance(state)
        assert isinstance(after, Watched)
        silent = state.silent + 1
        if not state.dead:
            return changed(after, silent=silent)
        messages = tuple(m for m in after.messages if m.kind is not Kind.OWNER_BEAT)
        return changed(after, silent=silent, owner=state.owner, messages=messages)

    def _renew(self, state: State) -> tuple[What, State, Message]:
        what, after, answer = super()._renew(state)
        assert isinstance(after, Watched)
        return what, changed(after, silent=0) if what is What.RENEWED else after, answer


def model_of(design: Design, mix: Mix) -> Model:
    """The small world for this mix: where the owner may die, one that also judges L13."""
    return NeglectModel(design, mix) if mix.faults.deaths else Model(design, mix)
