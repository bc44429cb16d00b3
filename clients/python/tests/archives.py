"""Folders with the layout of an archive, with rows of a test. The files have the columns and the types of those that the server writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from oddswire.archive.catalog import Kind
from oddswire.archive.columns import columns_of, polars_types

pl = pytest.importorskip("polars")
VENUE = "kalshi"


def write_day(
    root: Path, kind: Kind, day: str, rows: Sequence[Mapping[str, Any]], *, schema: int = 1, venue: str = VENUE
) -> Path:
    """Writes the file and the manifest of a day; without rows only the manifest. Returns the folder of the day."""
    folder = root / kind / f"venue={venue}" / f"date={day}"
    folder.mkdir(parents=True, exist_ok=True)
    for former in folder.iterdir():
        former.unlink()
    files = []
    if rows:
        types = polars_types()
        columns = {name: types[of] for name, of in columns_of(kind).items() if name not in ("venue", "date")}
        made = folder / "made.parquet"
        pl.DataFrame([{name: row.get(name) for name in columns} for row in rows], schema=columns).write_parquet(made)
        sha256 = hashlib.sha256(made.read_bytes()).hexdigest()
        name = f"{kind}-{venue}-{date.fromisoformat(day)}-r1-{sha256[:12]}.parquet"
        made.rename(folder / name)
        size = (folder / name).stat().st_size
        files.append({"file": name, "schema_version": schema, "bytes": size, "sha256": sha256})
    manifest = {"schema_version": schema, "kind": kind, "venue": venue, "date": day, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
