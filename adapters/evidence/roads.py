"""The roads to a law: what each reads from its runs' records, and says of one law."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from unswept.adapters.evidence.promises import LAWS_OF
from unswept.adapters.evidence.records import Record
from unswept.adapters.evidence.verdicts import Kind, Row, Verdict, counted, together
from unswept.simulations.profiles import named
from unswept.spec.explorer.designs import DESIGNS
from unswept.spec.explorer.table.designs import TABLE_DESIGNS
from unswept.spec.explorer.table.settled import SETTLING_DESIGNS

Judge = Callable[[Record, str], Verdict | None]
"""What a fresh record says of the law of this id; None: it does not speak of it."""
_Search = Mapping[str, Any]
"""One search of the explorer, as it is printed."""


@frozen
class Road:
    """One way of looking for what would break a law."""

    id: str
    title: str
    says: str
    """What it does, in one sentence."""
    records: tuple[str, ...]
    """The names of the records that it reads."""
    owed: bool
    """Is a law without it a hole? Else it adds to what the others show."""
    command: str
    """What makes its record."""
    judge: Judge


# Proofs -----------------------------------------------------------------------------------------

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"shape": ("WF",), "invariant": ("L1",)}
)
"""Theorems that bear the name of what they are for, and are part of a law."""


def laws_of(theorem: Mapping[str, Any]) -> tuple[str, ...]:
    """The laws that a theorem is part of: `SQL L3/L7` is of two."""
    words = str(theorem["law"])
    return _GROUPS.get(words, tuple(re.findall(r"\b(?:L\d+a?|F\d)\b", words)))


def _proofs(record: Record, law: str) -> Verdict | None:
    mine = [each for each in record.result["theorems"] if law in laws_of(each)]
    refuted = [each for each in mine if each["verdict"] == "refuted"]
    if not mine or not (record.whole or refuted):
        return None
    rows = tuple(
        Row((each["name"], each["claim"], each["verdict"]), each["seconds"]) for each in mine
    )
    headings = ("theorem", "claim", "verdict")
    open_ = [each for each in mine if each["verdict"] != "proved"]
    if refuted:
        said = f"{refuted[0]['name']}, but not for {refuted[0]['why']}"
        return Verdict(Kind.REFUTED, said, headings, rows)
    if open_:
        said = f"{len(open_)} of {len(mine)}: {open_[0]['name']}: {open_[0]['why']}"
        return Verdict(Kind.UNDETERMINED, said, headings, rows)
    return Verdict(Kind.PROVED, counted(len(mine), "theorem"), headings, rows)


def _twins(record: Record, law: str) -> Verdict | None:
    """A twin that is proved refutes nothing about the law: it says that a theorem shows nothing."""
    mine = [each for each in record.result["theorems"] if law in laws_of(each)]
    blind = [
        each
        for each in mine
        if {each["witness"]["verdict"], each["broken"]["verdict"]} != {"refuted"}
    ]
    if not mine or not (record.whole or blind):
        return None
    rows = tuple(
        Row((each["name"], each["twin"]), each["broken"]["seconds"])
        for each in mine
        if each not in blind
    )
    headings = ("theorem", "is refuted where")
    if blind:
        said = f"{blind[0]['name']} does not notice its twin, or speaks of nothing"
        return Verdict(Kind.UNDETERMINED, said, headings, rows)
    return Verdict(Kind.CAUGHT, counted(len(mine), "broken twin"), headings, rows)


# Explorer ---------------------------------------------------------------------------------------

_WINDOWED: Final = "L12"
_SEARCH: Final = ("world", "verdict", "states", "transitions", "depth")


def _explorer(record: Record, law: str) -> Verdict | None:
    if record.name == "windows":
        return _windows(record) if law == _WINDOWED else None
    result = record.result
    of_table = result["table"]["judged"].get(law, 0)
    of_hearts = result["judged"].get(law, 0) - of_table
    hearts = [(each["mix"], each) for each in _own(result, result["searches"])]
    table = [
        (f"{each['scope']}, {each['instances']} instances, {counted(each['leases'], 'job')}", each)
        for each in _own(result, result["table"]["searches"])
    ]
    parts = (_searched(hearts, law, of_hearts), _searched(table, law, of_table))
    found = together(part for part in parts if part is not None)
    if found is None or not (record.whole or found.kind is Kind.REFUTED):
        return None
    return found


def _own(result: Mapping[str, Any], searches: Iterable[_Search]) -> Iterator[_Search]:
    """Those of the design that is judged."""
    return (each for each in searches if each["design"] == result["design"])


def _broken_by(search: _Search) -> dict[str, str]:
    """The laws that a search saw broken, and how."""
    said = dict(each.split(": ", 1) for each in search.get("offences", ()))
    laws = search["laws"] if "laws" in search else [search["law"]] if search["law"] else []
    steps = f"after {counted(len(search['trace']), 'event')}"
    return {law: f"{said[law]}, {steps}" if law in said else steps for law in laws}


def _searched(own: Sequence[tuple[str, _Search]], law: str, judged: int) -> Verdict | None:
    """What searches come to for one law; one that ended at another law says nothing of this."""
    broken = [
        f"{name}: {how}" for name, each in own for of, how in _broken_by(each).items() if of == law
    ]
    if not judged and not broken:
        return None
    rows = tuple(
        Row(
            (
                name,
                each["verdict"],
                f"{each['states']:,}",
                f"{each['transitions']:,}",
                str(each["depth"]),
            ),
            each["seconds"],
        )
        for name, each in own
    )
    ended = [(name, each) for name, each in own if each["verdict"] != "exhausted"]
    if broken:
        return Verdict(Kind.REFUTED, broken[0], _SEARCH, rows)
    if ended:
        name, each = ended[0]
        said = f"{name}: {each['verdict']} after {counted(each['states'], 'state')}"
        return Verdict(Kind.UNDETERMINED, said, _SEARCH, rows)
    states = counted(sum(each["states"] for _, each in own), "state")
    said = f"{states} in {counted(len(own), 'world')}, judged {counted(judged, 'time')}"
    return Verdict(Kind.EXHAUSTED, said, _SEARCH, rows)


def _windows(record: Record) -> Verdict | None:
    cases = record.result["windows"]
    wrong = [each for each in cases if not each["agrees"]]
    if wrong and record.exit_code == 1:
        return Verdict(Kind.REFUTED, f"the formula of the window: {wrong[0]}")
    if wrong:
        return Verdict(Kind.UNDETERMINED, "a search for the least window was given up")
    return Verdict(Kind.EXHAUSTED, f"the window's formula is exact in {len(cases)} cases")


# Simulator --------------------------------------------------------------------------------------


def _simulator(record: Record, law: str) -> Verdict | None:
    found = record.result
    broken = found["violation"] if found["violation"] and found["violation"]["law"] == law else None
    judged = found["checked"].get(law, 0)
    if broken is not None:
        said = f"seed {found['violated_seed']}: {broken['offence']}; {found['replay']}"
        return Verdict(Kind.REFUTED, said)
    if not (record.whole and judged):
        return None
    if found["unequal_seed"] is not None:
        return Verdict(Kind.UNDETERMINED, f"seed {found['unequal_seed']} gave two different runs")
    hours = found["simulated_ms"] / 3_600_000
    settings = found["settings"]
    row = Row(
        (
            found["store"],
            f"1 to {found['seeds']}",
            f"{hours:.1f}",
            f"{found['commands']:,}",
            f"{judged:,}",
            named(tuple(settings["faults"])),
            f"{settings['instances']} gateways, {settings['runners']} runners",
        )
    )
    headings = ("store", "seeds", "simulated hours", "commands", "judged", "faults", "instances")
    said = f"{counted(found['seeds'], 'seed')}, {hours:.1f} simulated hours on {found['store']}"
    return Verdict(Kind.SURVIVED, f"{said}, judged {counted(judged, 'time')}", headings, (row,))


# Broken designs ---------------------------------------------------------------------------------


def _designs(record: Record, law: str) -> Verdict | None:
    """Where several runs tried a design, each says what it found."""
    tried = _of_explorer(record.result) if record.name == "explore" else _of_simulator(record)
    mine = tuple(Row(cells) for broken, cells in tried if broken == law)
    if not mine or not record.whole:
        return None
    headings = ("design", "what it does", "shown by", "how it fails")
    said = f"{counted(len(mine), 'broken design')}, by {record.name}"
    return Verdict(Kind.CAUGHT, said, headings, mine)


def _of_simulator(record: Record) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The law that caught a design, and the cells of its row."""
    for each in record.result["designs"]:
        if each["law"] is not None:
            shown = f"seed {each['seed']}"
            yield each["law"], (each["design"], each["sentence"], shown, each["offence"])


def _of_explorer(result: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in (*result["searches"], *result["table"]["searches"]):
        if each["design"] != result["design"]:
            for law, how in _broken_by(each).items():
                says = _EXPLORED.get(each["design"], "")
                shown = each["mix"] if "mix" in each else each["scope"]
                yield law, (each["design"], says, shown, how)


_EXPLORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        each.name: each.sentence
        for designs in (DESIGNS, TABLE_DESIGNS, SETTLING_DESIGNS)
        for each in designs.values()
    }
)
"""What the explorer's designs do."""


# Real runs --------------------------------------------------------------------------------------


def _real_runs(record: Record, law: str) -> Verdict | None:
    promises = {
        name: offences
        for name, offences in record.result["promises"].items()
        if law in LAWS_OF.get(name, ())
    }
    if not promises:
        return None
    found = record.result
    rows = tuple(
        Row((name, found["store"], f"broken {len(offences)} times" if offences else "held"))
        for name, offences in promises.items()
    )
    headings = ("promise", "store", "verdict")
    broken = [offence for offences in promises.values() for offence in offences]
    if broken:
        return Verdict(Kind.REFUTED, f"{record.command}: {broken[0]}", headings, rows)
    if found["never"]:
        said = f"{record.command}: never {found['never'][0]}"
        return Verdict(Kind.UNDETERMINED, said, headings, rows)
    return Verdict(Kind.SURVIVED, record.command.removeprefix("unswept "), headings, rows)


def _audit(record: Record, law: str) -> Verdict | None:
    found = next((each for each in record.result["verdicts"] if each["law"] == law), None)
    if found is None:
        return None
    if not found["looked_at"]:
        return Verdict(Kind.NOT_JUDGED, found["unseen"])
    place = record.result["place"]
    row = Row((place, "; ".join(found["looked_at"]), str(found["count"]), found["unseen"]))
    headings = ("place", "looked at", "offences", "history does not show")
    if found["count"]:
        first = found["offences"][0]["said"] if found["offences"] else ""
        said = f"{counted(found['count'], 'offence')} in {place}: {first}"
        return Verdict(Kind.REFUTED, said, headings, (row,))
    events = counted(record.result["events"], "event")
    return Verdict(Kind.SURVIVED, f"{events} of {place}", headings, (row,))


ROADS: Final = (
    Road(
        "proofs",
        "Proofs",
        "CrossHair looks for an input of the very functions, and of the SQL, that breaks it; "
        "PROVED means that all paths were seen and there is none.",
        ("prove",),
        True,
        "unswept prove",
        _proofs,
    ),
    Road(
        "twins",
        "Broken twins",
        "The same theorems over code with one small edit: a theorem that holds of broken code says "
        "nothing about the code.",
        ("twins",),
        False,
        "unswept prove --twins",
        _twins,
    ),
    Road(
        "explorer",
        "Explorer",
        "Every schedule of a small world, breadth-first over the functions that production calls.",
        ("explore", "windows"),
        True,
        "unswept explore",
        _explorer,
    ),
    Road(
        "simulator",
        "Simulator",
        "Many instances on a real store through virtual time and random faults; the law is judged "
        "at every step that can break it.",
        ("simulate",),
        True,
        "unswept simulate",
        _simulator,
    ),
    Road(
        "designs",
        "Broken designs",
        "Designs that are broken on purpose, each run until a law catches it: a law that catches "
        "nothing has shown nothing.",
        ("simulate", "mutants", "explore"),
        True,
        "unswept simulate",
        _designs,
    ),
    Road(
        "real",
        "Real runs",
        "Real processes on a real store that are killed, stopped and cut off, judged by notes of "
        "their own.",
        ("chaos", "fleet"),
        False,
        "unswept chaos, unswept fleet",
        _real_runs,
    ),
    Road(
        "audit",
        "Audit",
        "The history that a real database has kept.",
        ("audit",),
        False,
        "unswept audit URL",
        _audit,
    ),
)
"""In the order of the page; tests come last, for they leave no record."""
