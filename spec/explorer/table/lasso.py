"""Finds, in a finite graph, a way on which something is never reached though nobody is unfair."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

Action = str | tuple[str, str]


class Edge(NamedTuple):
    """A step: by which action (one that must not be put off for ever, or None), and to where."""

    action: Action | None
    to: int
    words: str = ""


Graph = Sequence[Sequence[Edge]]


def fair_components(graph: Graph, inside: Callable[[int], bool]) -> Iterator[list[int]]:
    """Each set of states among which a fair run may stay for ever while it never leaves `inside`.

    A run is fair if no action is put off for ever that could be done all the while: in some state
    of the run it cannot be done, or it is done.
    """
    for component in _components(graph, inside):
        members = set(component)
        edges = [edge for state in component for edge in graph[state]]
        if not any(edge.to in members for edge in edges):
            continue
        done = {edge.action for edge in edges if edge.to in members}
        always = set.intersection(*({e.action for e in graph[state]} for state in component))
        if all(action is None or action in done for action in always):
            yield component


def around(graph: Graph, component: Iterable[int], begin: int) -> list[tuple[int, int]]:
    """A way from `begin` through the component and back, that does each of its actions once: pairs
    of a state and the place of the edge that is taken there."""
    members = set(component)
    inner = (edge for state in members for edge in graph[state] if edge.to in members)
    wanted = {edge.action for edge in inner if edge.action is not None}
    way: list[tuple[int, int]] = []
    at = begin
    while wanted:
        leg = _way(graph, members, at, actions=frozenset(wanted))
        way += leg
        at = graph[leg[-1][0]][leg[-1][1]].to
        wanted -= {graph[state][place].action for state, place in leg}
    if at != begin or not way:
        way += _way(graph, members, at, to=begin)
    return way


def _way(
    graph: Graph,
    members: set[int],
    begin: int,
    actions: frozenset[Action | None] = frozenset(),
    to: int | None = None,
) -> list[tuple[int, int]]:
    """The shortest way inside whose last edge does one of these or leads there; there is one."""
    came: dict[int, tuple[int, int]] = {}
    queue, seen = deque([begin]), {begin}
    while queue:
        state = queue.popleft()
        for place, edge in enumerate(graph[state]):
            if edge.to not in members:
                continue
            if edge.action in actions or edge.to == to:
                way = [(state, place)]
                while way[0][0] != begin:
                    way.insert(0, came[way[0][0]])
                return way
            if edge.to not in seen:
                seen.add(edge.to)
                came[edge.to] = (state, place)
                queue.append(edge.to)
    raise AssertionError("a component leads from each of its states to each other")


def _components(graph: Graph, inside: Callable[[int], bool]) -> Iterator[list[int]]:
    """The strongly connected components of the part that is inside (Tarjan, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in range(len(graph)):
        if root in order or not inside(root):
            continue
        work = [(root, iter(graph[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            state, edges = work[-1]
            for edge in edges:
                to = edge.to
                if not inside(to):
                    continue
                if to not in order:
                    order[to] = low[to] = len(order)
                    stack.append(to)
                    on_stack.add(to)
                    work.append((to, iter(graph[to])))
                    break
                if to in on_stack:
                    low[state] = min(low[state], order[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == order[state]:
                    component: list[int] = []
                    while not component or component[-1] != state:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    yield component
