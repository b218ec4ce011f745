"""What a base install has not, and how it is said."""

from __future__ import annotations

from importlib import import_module

from unswept.core.errors import MisuseError


def need(said: str, extra: str, *modules: str) -> None:
    """Refuse to go on where one of these modules cannot be imported: `said` is who needs what, and
    `extra` is that of the package which brings it."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise MisuseError(f"{said}: pip install 'unswept[{extra}]' ({error})") from None
