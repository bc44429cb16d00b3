"""Files of the archive. A download continues an unfinished one, and ends with the sha256 of the file."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import httpx

from .errors import OddswireError, TransportError
from .transport import Core, Operation, Reply, api_error

if TYPE_CHECKING:
    from .runners import AsyncRunner, Runner

ARCHIVE_FILE = Operation("getArchiveFile", "GET", "/v1/archive/{archive_file}", "bearer", "read")
_PIECE = 1024 * 1024


class ChecksumError(OddswireError):
    """The bytes of a download do not have the sha256 of the file. The unfinished file is deleted."""


class _Part:
    """An unfinished download beside its target."""

    def __init__(self, target: Path, sha256: str | None) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")
        self.sha256 = sha256
        # Without a checksum nobody would notice that the two halves are of two revisions.
        self.start = self.path.stat().st_size if sha256 is not None and self.path.exists() else 0

    def headers(self) -> dict[str, str]:
        if self.start == 0:
            return {}
        return {"Range": f"bytes={self.start}-", "If-Range": f'"{self.sha256}"'}

    def open(self, status: int) -> BinaryIO:
        return self.path.open("ab" if status == 206 else "wb")

    def finish(self) -> Path:
        if self.sha256 is not None:
            digest = hashlib.sha256()
            with self.path.open("rb") as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
            if digest.hexdigest() != self.sha256:
                self.path.unlink()
                raise ChecksumError(f"{self.target.name} has the sha256 {digest.hexdigest()}, not {self.sha256}")
        return self.path.replace(self.target)


def _request(http: httpx.Client | httpx.AsyncClient, core: Core, file: str, part: _Part) -> httpx.Request:
    url = core.url(ARCHIVE_FILE, {"archive_file": file}, {})
    # The limit is for each piece: a file may take as long as it needs. Compressed bytes would have other places.
    headers = {**core.headers(ARCHIVE_FILE), "Accept-Encoding": "identity", **part.headers()}
    return http.build_request("GET", url, headers=headers, timeout=core.settings.timeout)


def _whole(part: _Part, status: int, body: bytes, headers: httpx.Headers) -> bool:
    """Whether the unfinished file has all bytes already. Raises the error of another answer."""
    if status == 416 and part.start > 0:
        return True
    raise api_error(Reply(status, {name.lower(): value for name, value in headers.items()}, body))


class Download:
    """The call for a file of the archive."""

    _core: Core
    _runner: Runner

    def download(self, file: str, target: str | Path, *, sha256: str | None = None) -> Path:
        """
        Saves a file of the archive and returns its path. There is no retry: call it again, and with `sha256` it continues behind the bytes
        that are there.

        Args:
            file: The `file` of a row of `list`.
            target: Where to save it. Until the end the bytes are beside it, with the ending `.part`.
            sha256: The `sha256` of the same row.

        Raises:
            ChecksumError: the bytes have another sha256.
        """
        part = _Part(Path(target), sha256)
        with ExitStack() as stack:
            try:
                response = self._runner.http.send(
                    _request(self._runner.http, self._core, file, part), stream=True, follow_redirects=False
                )
                stack.callback(response.close)
                if response.status_code in (200, 206):
                    with part.open(response.status_code) as opened:
                        for piece in response.iter_raw(_PIECE):
                            opened.write(piece)
                else:
                    _whole(part, response.status_code, response.read(), response.headers)
            except (httpx.HTTPError, httpx.StreamError) as error:
                raise TransportError(f"no whole file: {type(error).__name__}: {error}") from error
        return part.finish()


class AsyncDownload:
    """The call for a file of the archive."""

    _core: Core
    _runner: AsyncRunner

    async def download(self, file: str, target: str | Path, *, sha256: str | None = None) -> Path:
        """As `Oddswire.archive.download`."""
        part = _Part(Path(target), sha256)
        try:
            response = await self._runner.http.send(
                _request(self._runner.http, self._core, file, part), stream=True, follow_redirects=False
            )
            try:
                if response.status_code in (200, 206):
                    with part.open(response.status_code) as opened:
                        async for piece in response.aiter_raw(_PIECE):
                            opened.write(piece)
                else:
                    _whole(part, response.status_code, await response.aread(), response.headers)
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise TransportError(f"no whole file: {type(error).__name__}: {error}") from error
        return part.finish()
