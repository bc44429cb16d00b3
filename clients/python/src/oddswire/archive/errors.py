"""The errors of reads of the archive."""

from __future__ import annotations

from ..errors import OddswireError


class ArchiveError(OddswireError):
    """The archive cannot answer this read."""


class NotArchivedError(ArchiveError):
    """Days of the range are not archived. They are not empty days: nothing is known about their rows."""


class IncompleteError(ArchiveError):
    """The range has hours that are not proven complete. `Archive.coverage` lists them."""


class DamagedError(ArchiveError):
    """A file or a manifest is missing, or differs from what the archive states about it."""


class NewerSchemaError(ArchiveError):
    """A file has a newer schema than this version of the package knows."""
