"""Stories on the pure store, in the words of `unswept.simulations.scenarios.language`."""

from __future__ import annotations

from unswept.simulations.scenarios.language import TERMS
from unswept.simulations.scenarios.storyteller import Storyteller

__all__ = ["TERMS", "Storyteller", "story"]


def story(text: str) -> None:
    """Ask the commands of `text` and compare the replies, all at once."""
    told = Storyteller.of_pure_store().play(text)
    assert told.told == told.expected, f"the store's side:\n{told.told}"
