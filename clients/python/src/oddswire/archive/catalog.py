"""The days of an archive and their files: a folder, or the routes of the API with a folder that keeps downloads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from ..client import Oddswire
from .errors import DamagedError, NewerSchemaError

Kind = Literal["trades", "candles", "prices", "books", "markets", "resolutions", "coverage"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SCHEMA_VERSION = 1
"""The newest version of the columns that this package knows."""


@dataclass(frozen=True)
class Day:
    """An archived UTC day of a kind and venue."""

    kind: Kind
    venue: str
    date: date
    file: str | None
    """None for a day that is archived and has no rows."""
    bytes: int
    sha256: str | None
    schema_version: int

    @property
    def folder(self) -> Path:
        return Path(self.kind, f"venue={self.venue}", f"date={self.date}")


Days = dict[str, dict[date, Day]]
"""Archived days by venue. A day that is absent is not archived."""


class Catalog(Protocol):
    """Where days and files come from."""

    def days(self, kind: Kind) -> Days:
        """All archived days of a kind."""

    def path(self, day: Day) -> Path:
        """The file of a day that has one."""

    def close(self) -> None:
        """Ends connections."""


class FolderCatalog:
    """A folder with the layout of `ARCHIVE_DIR`. A file counts when the manifest beside it names it."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise FileNotFoundError(f"{root} is not a folder")
        if not any((root / kind).is_dir() for kind in KINDS):
            raise FileNotFoundError(f"{root} has none of the folders {', '.join(KINDS)}")
        self._root = root

    def days(self, kind: Kind) -> Days:
        paths = sorted((self._root / kind).glob("venue=*/date=*/manifest.json"))
        return _by_venue(_day_of_manifest(kind, path) for path in paths)

    def path(self, day: Day) -> Path:
        return self._root / day.folder / str(day.file)

    def close(self) -> None:
        """A folder has no connections."""


class ServiceCatalog:
    """The archive of a running service. Files are downloaded when a read needs them, with their sha256 compared, and kept."""

    def __init__(self, client: Oddswire, cache: Path) -> None:
        self._client = client
        self._cache = cache

    def days(self, kind: Kind) -> Days:
        return _by_venue(
            Day(kind, one.venue, one.date, one.file, one.bytes, one.sha256, one.schema_version)
            for one in self._client.archive.iterate(kind=kind, page_size=1_000)
        )

    def path(self, day: Day) -> Path:
        path = self._cache / day.folder / str(day.file)
        # The name of a file has the begin of its sha256, so a file of this name and size is the same one.
        if not path.is_file() or path.stat().st_size != day.bytes:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._client.archive.download(str(day.file), path, sha256=day.sha256)
        return path

    def close(self) -> None:
        self._client.close()


def _by_venue(days: Iterable[Day]) -> Days:
    found: Days = {}
    for day in days:
        found.setdefault(day.venue, {})[day.date] = day
    return found


def _day_of_manifest(kind: Kind, path: Path) -> Day:
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
        venue, day = str(facts["venue"]), date.fromisoformat(facts["date"])
        versions = [facts["schema_version"], *(one["schema_version"] for one in facts["files"])]
        files = [(str(one["file"]), int(one["bytes"]), str(one["sha256"])) for one in facts["files"]]
        file, size, sha256 = files[0] if files else (None, 0, None)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"{path} is not a manifest: {type(error).__name__}: {error}") from error
    found = Day(kind, venue, day, file, size, sha256, max(versions))
    if facts.get("kind") != kind or Path(*path.parts[-4:-1]) != found.folder or len(files) > 1:
        raise DamagedError(f"{path} does not describe the day of its folder")
    return found


def with_known_schema(day: Day) -> Day:
    """
    The same day.

    Raises:
        NewerSchemaError: this package does not know its columns.
    """
    if day.schema_version > SCHEMA_VERSION:
        raise NewerSchemaError(
            f"{day.kind} of {day.venue} {day.date} have the schema {day.schema_version}; "
            f"this package knows schemas up to {SCHEMA_VERSION}"
        )
    return day


def checked(path: Path, day: Day, *, with_sha256: bool) -> Path:
    """
    The path of a file that is the one of its day.

    Raises:
        DamagedError: the file is missing, or has another size or sha256.
    """
    if not path.is_file():
        raise DamagedError(f"{path} is missing")
    if path.stat().st_size != day.bytes:
        raise DamagedError(f"{path} has {path.stat().st_size} bytes, not {day.bytes}")
    if with_sha256:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(1024 * 1024):
                digest.update(piece)
        if digest.hexdigest() != day.sha256:
            raise DamagedError(f"{path} has the sha256 {digest.hexdigest()}, not {day.sha256}")
    return path
