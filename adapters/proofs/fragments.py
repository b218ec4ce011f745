"""Pieces of SQL as functions of a row, so that a prover can run them beside the core.

The logic is SQL's own, of three values: NULL compared with anything is NULL, and a condition counts
only if it is true. What is not known here (a function, an operator, a star) is refused, never
guessed at: then the theorem is undetermined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from unswept.core.errors import MisuseError

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

Row = Sequence[Any]
"""The values of a row's columns, in an order that is known beforehand; None is NULL."""
Params = Mapping[str, Any]
Term = Callable[[Row, Params], Any]
"""The value of an expression, for a row and named parameters."""


_READ: Final = frozenset(
    {"this", "expression", "expressions", "ifs", "default", "true", "negate", "is_string"}
)
"""What a node may say besides its kind; anything more would be passed over."""


@cache
def parsed(sql: str, reads: str) -> Expression:
    """The tree of one expression, as the database of that name reads it; nobody changes it."""
    from sqlglot import parse_one

    tree: Any = parse_one(f"SELECT {sql}", read=reads)
    (expression,) = tree.expressions
    return expression  # type: ignore[no-any-return]


def is_true(condition: Term, row: Row, params: Params) -> bool:
    """Does a WHERE with this condition take the row? NULL does not."""
    value = condition(row, params)
    return value is not None and bool(value)


def tested_columns(expression: Expression) -> Iterator[str]:
    """The columns whose value decides something; one that is only copied does not."""
    from sqlglot import expressions as e

    for column in expression.find_all(e.Column):
        copied = isinstance(column.parent, (e.Case, e.If, e.Select)) and column.arg_key != "this"
        if not copied and column.parent is not None:
            yield column.name


def parameters_of(expression: Expression) -> frozenset[str]:
    """The names of its parameters."""
    from sqlglot import expressions as e

    return frozenset(each.name for each in expression.find_all(e.Placeholder))


def compiled(expression: Expression, columns: Sequence[str]) -> Term:
    """The expression as a function of rows with these columns."""
    from sqlglot import expressions as e

    def inner(tree: Expression) -> Term:
        return compiled(tree, columns)

    unread = {name for name, value in expression.args.items() if value} - _READ
    if unread or (expression.args.get("negate") and not isinstance(expression, e.Is)):
        raise MisuseError(f"no proof can read this SQL yet: {expression.sql()}")
    match expression:
        case e.Paren():
            return inner(expression.this)
        case e.Column() if not expression.table:
            return _column(columns.index(expression.name))
        case e.Placeholder():
            return _parameter(expression.name)
        case e.Null():
            return _constant(None)
        case e.Literal():
            return _constant(str(expression.this) if expression.is_string else int(expression.this))
        case e.And():
            return _and(inner(expression.this), inner(expression.expression))
        case e.Or():
            return _or(inner(expression.this), inner(expression.expression))
        case e.Not():
            return _not(inner(expression.this))
        case e.Is() if isinstance(expression.expression, e.Null):
            # IS NOT NULL is one node as Postgres reads it, and a NOT around another elsewhere.
            is_null = _is_null(inner(expression.this))
            return _not(is_null) if expression.args.get("negate") else is_null
        case e.In() if not expression.args.get("query"):
            return _in(inner(expression.this), [inner(x) for x in expression.expressions])
        case e.Coalesce():
            return _coalesce([inner(x) for x in (expression.this, *expression.expressions)])
        case e.Case() if expression.this is None:
            arms = [(inner(arm.this), inner(arm.args["true"])) for arm in expression.args["ifs"]]
            default = expression.args.get("default")
            return _case(arms, _constant(None) if default is None else inner(default))
    for kind, function in _operators().items():
        if type(expression) is kind:
            return _strict(function, inner(expression.this), inner(expression.expression))
    raise MisuseError(f"no proof can read this SQL yet: {expression.sql()}")


def _operators() -> Mapping[type, Callable[[Any, Any], Any]]:
    from sqlglot import expressions as e

    return {
        e.EQ: operator.eq,
        e.NEQ: operator.ne,
        e.LT: operator.lt,
        e.LTE: operator.le,
        e.GT: operator.gt,
        e.GTE: operator.ge,
        e.Add: operator.add,
        e.Sub: operator.sub,
    }


_NULL: Final = None


def _column(place: int) -> Term:
    return lambda row, params: row[place]


def _parameter(name: str) -> Term:
    return lambda row, params: params[name]


def _constant(value: Any) -> Term:
    return lambda row, params: value


def _strict(function: Callable[[Any, Any], Any], left: Term, right: Term) -> Term:
    """NULL on either side makes NULL."""

    def term(row: Row, params: Params) -> Any:
        a, b = left(row, params), right(row, params)
        return _NULL if a is None or b is None else function(a, b)

    return term


def _and(left: Term, right: Term) -> Term:
    def term(row: Row, params: Params) -> Any:
        a = left(row, params)
        if a is not None and not a:
            return False
        b = right(row, params)
        if b is not None and not b:
            return False
        return _NULL if a is None or b is None else True

    return term


def _or(left: Term, right: Term) -> Term:
    def term(row: Row, params: Params) -> Any:
        a = left(row, params)
        if a is not None and a:
            return True
        b = right(row, params)
        if b is not None and b:
            return True
        return _NULL if a is None or b is None else False

    return term


def _not(of: Term) -> Term:
    def term(row: Row, params: Params) -> Any:
        a = of(row, params)
        return _NULL if a is None else not a

    return term


def _is_null(of: Term) -> Term:
    return lambda row, params: of(row, params) is None


def _in(of: Term, members: list[Term]) -> Term:
    """As OR of equalities, NULLs included."""
    either = _constant(False)
    for member in members:
        either = _or(either, _strict(operator.eq, of, member))
    return either


def _coalesce(terms: list[Term]) -> Term:
    def term(row: Row, params: Params) -> Any:
        for each in terms:
            value = each(row, params)
            if value is not None:
                return value
        return _NULL

    return term


def _case(arms: list[tuple[Term, Term]], default: Term) -> Term:
    def term(row: Row, params: Params) -> Any:
        for condition, value in arms:
            if is_true(condition, row, params):
                return value(row, params)
        return default(row, params)

    return term
