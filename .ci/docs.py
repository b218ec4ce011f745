"""The guide's two generated pages, and the folder that mkdocstrings reads.

    python .ci/docs.py          # says which generated page is out of date (exit code 1)
    python .ci/docs.py --write  # renews them

They are kept in the tree so that they are read on GitHub too; a test compares them with the code.
MkDocs loads this file as a hook.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"


def on_startup(**_: Any) -> None:
    """MkDocs' hook: `core/` is read as `unswept.core`, which is no folder of the tree. On a fresh
    checkout too: what reads it looks, when it is configured, whether the folder is there."""
    links = ROOT / "build" / "types" / "unswept"
    links.mkdir(parents=True, exist_ok=True)
    for name in ("core", "spec", "simulations", "adapters"):
        with suppress(FileExistsError):
            (links / name).symlink_to(Path("../../..") / name)


# The laws -----------------------------------------------------------------------------------------


def laws_page() -> str:
    """Every law: what it says, what it judges, the predicate that says how it was broken."""
    from unswept.spec.laws import LAWS, Judges

    text = inspect.getsource(Judges)
    meanings = dict(re.findall(r'^    [A-Z]+ = "(\w+)"\n    """(.*?)"""', text, re.M | re.S))
    lines = [
        "# The laws",
        "",
        "Written by `.ci/docs.py` from `spec/laws.py`. Proofs, explorer, simulator and audit judge",
        "by these predicates; [the reliability model](../reliability.md) says which clock decides.",
        "",
        "| law | | judges | on |",
        "|---|---|---|---|",
    ]
    for law in LAWS:
        commands = ", ".join(f"`{kind.__name__}`" for kind in law.on) or "any command"
        on = commands if law.judges in (Judges.STEP, Judges.SEND) else ""
        lines.append(f"| {law.id} | {law.sentence} | {law.judges} | {on} |")
    lines += ["", "| judges | one observation |", "|---|---|"]
    lines += [f"| {judges} | {_cell(meanings[judges])} |" for judges in Judges]
    return "\n".join(lines) + "\n"


# The command line ---------------------------------------------------------------------------------


def cli_page() -> str:
    """Every command with its arguments, options, defaults and variables."""
    import typer.main

    from unswept.adapters.cli.main import app

    root: Any = typer.main.get_command(app)
    lines = ["# The command line", "", "Written by `.ci/docs.py` from the commands themselves.", ""]
    lines += ["| command | |", "|---|---|"]
    found = list(_commands(root, "unswept"))
    for name, command in found:
        anchor = name.replace(" ", "-")
        first = _cell(inspect.cleandoc(command.help or "").split("\n\n")[0])
        lines.append(f"| [`{name}`](#{anchor}) | {first} |")
    for name, command in found:
        lines += ["", f"## {name}", "", *_command(name, command)]
    return "\n".join(lines) + "\n"


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _command(name: str, command: Any) -> Iterator[str]:
    yield from inspect.cleandoc(command.help or "").splitlines()
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    words = [each.metavar or each.name.upper() for each in arguments]
    wanted = [w if each.required else f"[{w}]" for w, each in zip(words, arguments, strict=True)]
    yield from ("", "```console", " ".join(["$", name, "[OPTIONS]", *wanted]), "```", "")
    yield from ("| | default | |", "|---|---|---|")
    for word, each in zip(words, arguments, strict=True):
        yield f"| `{_cell(word)}` | {_default(each)} | {_cell(each.help or '')} |"
    for each in options:
        names = ", ".join(f"`{option}`" for option in (*each.opts, *each.secondary_opts))
        said = _cell(each.help or "")
        if each.envvar:
            said += f" Variable: `{each.envvar}`."
        yield f"| {names} | {_default(each)} | {said} |"
    yield "| `--help` |  | Show this and exit. |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.default is False:
        return ""
    if parameter.default is True:
        return f"`{parameter.opts[0]}`"
    return f"`{parameter.default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


GENERATED = {"laws.md": laws_page, "cli.md": cli_page}


def main(write: bool) -> int:
    """Renew the pages, or say which are out of date."""
    stale = [
        name
        for name, make in GENERATED.items()
        if not (PAGES / name).exists() or (PAGES / name).read_text(encoding="utf-8") != make()
    ]
    for name in stale:
        if write:
            (PAGES / name).write_text(GENERATED[name](), encoding="utf-8")
        print(f"docs/reference/{name}", "written" if write else "is out of date: --write renews it")
    return int(bool(stale) and not write)


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
