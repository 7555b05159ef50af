"""Where a server that a test starts has its data: below the build folder, as all that is made."""
import os
import pathlib
import tempfile

DATA = pathlib.Path(__file__).resolve().parents[2] / "build" / "servers"


def open_to_all(folder):
    """Whether every user may go through the folder and all above it."""
    return all(p.stat().st_mode & 0o001 for p in (folder, *folder.parents))


def new_folder(name, others=False):
    """
    A fresh folder. With `others` one that another user reaches, too: PostgreSQL does not run
    as root, and below somebody's closed home its own user finds nothing. Then it is in /tmp.
    """
    DATA.mkdir(parents=True, exist_ok=True)
    elsewhere = others and not open_to_all(DATA)
    return tempfile.mkdtemp(prefix=f"hooktrail-{name}-" if elsewhere else f"{name}-",
                            dir=None if elsewhere else DATA)
