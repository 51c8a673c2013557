"""A dropped file, from the request to the disk, without a copy anywhere else."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from python_multipart import MultipartParser
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect, Request

from labeldp.errors import ParameterError
from labeldp.page.chosen_folder import ChosenFolder

ROOM = 1 << 26
"""Bytes that a dropped file must leave free on the disk."""

LONGEST_FIELD = 1 << 12


class _Parts:
    """Sorts the parts of a form: one file goes to the disk, short fields to memory, all else is refused."""

    def __init__(self, folder: ChosenFolder, form_key: str) -> None:
        self._folder, self._form_key = folder, form_key
        self.fields: dict[str, str] = {}
        self.path: Path | None = None
        self._handle = -1
        self._headers: dict[bytes, bytes] = {}
        self._name = self._value = b""
        self._field, self._data = "", bytearray()
        self._is_file = self.is_whole = False

    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._take_name,
            "on_header_value": self._take_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._start,
            "on_part_data": self._take,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def _begin(self) -> None:
        self._headers, self._data, self._is_file = {}, bytearray(), False

    def _take_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _take_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _start(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        name = options.get(b"filename", b"").decode("utf-8", "replace")
        if b"filename" in options and name:
            if self.path is not None:
                raise ParameterError("drop one file at a time")
            if self.fields.get("form") != self._form_key:
                raise ParameterError("the form was not sent by this page: load it again")
            self._is_file = True
            self.path, self._handle = self._folder.dropped_file(name)

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            view = memoryview(data)[start:end]
            while view:
                view = view[os.write(self._handle, view) :]
        elif len(self._data) + end - start > LONGEST_FIELD:
            raise ParameterError("the form has a field that is far too long")
        else:
            self._data += data[start:end]

    def _end(self) -> None:
        if self._is_file:
            self.close()
        else:
            self.fields[self._field] = self._data.decode("utf-8", "replace")

    def _finish(self) -> None:
        self.is_whole = True

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def discard(self) -> None:
        self.close()
        if self.path is not None:
            self._folder.discard(self.path)


@asynccontextmanager
async def received_file(request: Request, folder: ChosenFolder, form_key: str) -> AsyncIterator[Path]:
    """Put a dropped file into the folder; it stays there only if nothing goes wrong in the block.

    Raises
    ------
    ParameterError
        If there is no file, no room for it, or the form is not one of the page.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise ParameterError("a file is sent by the form of the page")
    length = request.headers.get("content-length", "")
    free = shutil.disk_usage(folder.root).free - ROOM
    if length.isdecimal() and int(length) > free:
        raise ParameterError("there is not enough room on the disk for a copy of the file: put it into the folder")
    parts = _Parts(folder, form_key)
    parser = MultipartParser(options[b"boundary"], parts.callbacks())
    received = 0
    try:
        async for block in request.stream():
            received += len(block)
            if received > free:
                raise ParameterError("there is not enough room on the disk for a copy of the file")
            parser.write(block)
        parser.finalize()
        if not parts.is_whole:
            raise ClientDisconnect
        if parts.path is None:
            raise ParameterError("choose a file first")
        yield parts.path
    except (MultipartParseError, ClientDisconnect):
        parts.discard()
        raise ParameterError("the file did not arrive whole: try again") from None
    except BaseException:
        parts.discard()
        raise
