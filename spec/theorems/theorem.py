"""What a theorem is: a claim in words, a function that states it, and a break that it must notice.

* A theorem's function returns True or False where its claim applies, and None where it says
  nothing. It is proved when no input whatever makes it False.
* Its witness is an input for which it does not return None: a claim that never applies proves
  nothing.
* Its twin is the same claim after one small edit to the code that it speaks of. The twin must be
  refuted: a claim that holds of broken code says nothing about the code.
"""

from __future__ import annotations
import __future__

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from attrs import frozen

from unswept.core.errors import MisuseError

Claim = Callable[..., bool | None]
"""The function of a theorem: its parameters are drawn, and it is to hold whatever they are."""


@frozen
class Edit:
    """One function of the library with a piece of its text replaced."""

    function: Callable[..., Any]
    was: str
    becomes: str

    def __str__(self) -> str:
        where = f"{self.function.__module__.removeprefix('unswept.')}.{self.function.__qualname__}"
        return f"in {where}, `{self.was}` becomes `{self.becomes}`"

    @contextmanager
    def made(self) -> Iterator[None]:
        """The library with the edit, wherever the function has been imported to."""
        function = self.function
        assert isinstance(function, FunctionType)
        source = inspect.getsource(function)
        if source.count(self.was) != 1:
            raise MisuseError(
                f"a twin edits text that stands exactly once in {function.__qualname__}, "
                f"found {source.count(self.was)} times: {self.was}"
            )
        edited = compile(
            source.replace(self.was, self.becomes),
            inspect.getfile(function),
            "exec",
            flags=__future__.annotations.compiler_flag,
        )
        names: dict[str, Any] = {}
        exec(edited, dict(function.__globals__), names)
        whole = function.__code__
        function.__code__ = names[function.__name__].__code__
        try:
            yield
        finally:
            function.__code__ = whole


@frozen
class Reading:
    """A claim about the text of something: it is read, not searched, and there is no input."""

    offence: Callable[[], str | None]
    """What the text says wrongly; None: it is as the claim says."""
    subject: str
    """What is read."""


@frozen
class Variant:
    """The same claim over a broken rule, where the rule is data."""

    says: str
    claim: Claim | Reading

    def __str__(self) -> str:
        return self.says


@frozen
class Theorem:
    """One claim."""

    name: str
    law: str
    """The id of the law that it is part of, or what else it is for."""
    says: str
    """The claim in words."""
    claim: Claim | Reading
    twin: Edit | Variant


def theorem(law: str, claim: Claim, twin: Edit | Variant) -> Theorem:
    """A theorem that is named after its function and said by its docstring."""
    says = " ".join((claim.__doc__ or "").split())
    return Theorem(claim.__name__, law, says, claim, twin)


def by_name(theorems: Iterable[Theorem]) -> Mapping[str, Theorem]:
    """The theorems under their names, which must all be different."""
    named: dict[str, Theorem] = {}
    for each in theorems:
        if each.name in named:
            raise MisuseError(f"two theorems are named {each.name}")
        named[each.name] = each
    return named
