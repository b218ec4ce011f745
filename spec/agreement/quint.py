"""Evaluates pure Quint definitions, so that the specification itself judges, not a copy of it.

The definitions come as `.ci/quint` writes them from the parsed specification: a number, a truth
value or a name stands for itself, `["str", text]` for a text, and everything else is a list that
begins with `lambda`, `let` or the operator. Records are dicts that nobody changes, variants pairs
of tag and value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from unswept.core.errors import MisuseError

Scope = Mapping[str, Any]
Code = Callable[[Scope], Any]
"""An expression, ready to be evaluated where its names have values."""

_STRICT: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "eq": lambda a, b: a == b,
        "neq": lambda a, b: a != b,
        "iff": lambda a, b: a == b,
        "ilt": lambda a, b: a < b,
        "ilte": lambda a, b: a <= b,
        "igt": lambda a, b: a > b,
        "igte": lambda a, b: a >= b,
        "iadd": lambda a, b: a + b,
        "isub": lambda a, b: a - b,
        "not": lambda a: not a,
        "variant": lambda tag, value: (tag, value),
        "field": lambda record, name: record[name],
        "with": lambda record, name, value: {**record, name: value},
        "Rec": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
        "Tup": lambda *members: members,
    }
)
"""Operators that need all their arguments."""

UNIT: Final = ()


class Definitions:
    """The definitions of one module."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        """Definitions by name, as `.ci/quint` writes them; each is made ready at its first use."""
        self._sources = definitions
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """A value, or a function of the arguments that the operator takes."""
        if name not in self._values:
            if name not in self._sources:
                raise MisuseError(f"the specification defines no {name!r}")
            self._values[name] = self._code(self._sources[name])({})
        return self._values[name]

    def _code(self, tree: Any) -> Code:
        if isinstance(tree, bool | int):
            return lambda _: tree
        if isinstance(tree, str):
            return lambda scope: scope[tree] if tree in scope else self[tree]
        operator, *rest = tree
        if operator == "str":
            return lambda _: rest[0]
        if operator == "lambda":
            return self._function(rest[0], self._code(rest[1]))
        if operator == "let":
            name, value, body = rest[0], self._code(rest[1]), self._code(rest[2])
            return lambda scope: body({**scope, name: value(scope)})
        return self._application(operator, [self._code(argument) for argument in rest])

    @staticmethod
    def _function(params: list[str], body: Code) -> Code:
        return lambda scope: (
            lambda *values: body({**scope, **dict(zip(params, values, strict=True))})
        )

    def _application(self, operator: str, arguments: list[Code]) -> Code:
        if operator == "ite":
            test, yes, no = arguments
            return lambda scope: yes(scope) if test(scope) else no(scope)
        if operator == "and":
            return lambda scope: all(part(scope) for part in arguments)
        if operator == "or":
            return lambda scope: any(part(scope) for part in arguments)
        if operator == "implies":
            given, then = arguments
            return lambda scope: not given(scope) or then(scope)
        if operator == "matchVariant":
            return self._match(arguments)
        if operator in _STRICT:
            strict = _STRICT[operator]
            return lambda scope: strict(*(argument(scope) for argument in arguments))
        if operator not in self._sources:
            raise MisuseError(f"the evaluator knows no operator {operator!r}")
        return lambda scope: self[operator](*(argument(scope) for argument in arguments))

    @staticmethod
    def _match(arguments: list[Code]) -> Code:
        subject, *cases = arguments
        arms = list(zip(cases[::2], cases[1::2], strict=True))

        def matched(scope: Scope) -> Any:
            tag, value = subject(scope)
            for label, arm in arms:
                if label(scope) in (tag, "_"):
                    return arm(scope)(value)
            raise MisuseError(f"no case matches {tag}")

        return matched
