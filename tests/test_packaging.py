"""What a user installs is what stands in the tree, under `unswept` and nowhere else."""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("core", "spec", "simulations", "adapters")


def run(*command: str, cwd: Path) -> str:
    """The command's output; its errors are shown if it fails."""
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, built from a copy: `build/` in the tree may hold files that are gone from it."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for folder in (*FOLDERS, "tests"):
        shutil.copytree(
            ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    out = tmp_path_factory.mktemp("wheel")
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(tree))
    run(sys.executable, *build, cwd=out)
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def shipped(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if not name.split("/")[0].endswith(".dist-info")}


def test_wheel_puts_only_unswept_at_the_top(wheel: zipfile.ZipFile) -> None:
    """Nothing named `core` or `tests` lands in site-packages, where other projects' would clash."""
    assert {name.split("/")[0] for name in shipped(wheel)} == {"unswept"}
    assert {name.split("/")[1] for name in shipped(wheel)} == set(FOLDERS)


def test_wheel_tells_type_checkers_that_it_is_typed(wheel: zipfile.ZipFile) -> None:
    """Each of the four packages has its marker; `unswept` itself is a namespace and has none."""
    assert {f"unswept/{folder}/py.typed" for folder in FOLDERS} <= shipped(wheel)


def test_wheel_holds_every_source_file(wheel: zipfile.ZipFile) -> None:
    """Whatever pyproject.toml does not name is noticed: a folder, a migration, a page's part."""
    in_tree = {
        f"unswept/{file.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for pattern in ("*.py", "*.sql", "*.qnt", "*.json", "*.html", "*.css", "*.js", "py.typed")
        for file in (ROOT / folder).rglob(pattern)
    }
    missing = in_tree - shipped(wheel)
    assert not missing, f"list their folders in pyproject.toml, [tool.setuptools]: {missing}"
    assert shipped(wheel) == in_tree


def test_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    """`unswept` is a command, and the wheel has the module that it starts."""
    (entry_points,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    assert "unswept = unswept.adapters.cli.main:main" in wheel.read(entry_points).decode()
    assert "unswept/adapters/cli/main.py" in shipped(wheel)


def test_importing_the_core_imports_only_the_standard_library_and_attrs(tmp_path: Path) -> None:
    """In a fresh interpreter, beyond what any start of this environment imports by itself."""

    def modules_after(statement: str) -> set[str]:
        code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
        names: list[str] = json.loads(run(sys.executable, "-I", "-c", code, cwd=tmp_path))
        return {name.partition(".")[0] for name in names}

    new = modules_after("import unswept.core") - modules_after("pass")
    assert "unswept" in new
    assert new - sys.stdlib_module_names <= {"unswept", "attr", "attrs"}
