"""Client of the oddswire API: `Oddswire`, and `AsyncOddswire` for asyncio and trio. Its things are in `oddswire.models`."""

from . import errors, models, webhooks
from ._version import VERSION
from .asof import asof_join
from .at import At
from .at_async import AsyncAt
from .client import AsyncOddswire, Oddswire
from .encode import UNSET, Instant, Moment, Number, Unset
from .errors import ApiError, DeadlineError, NoHistoryError, OddswireError, TransportError, UnknownReceiptError
from .pages import Answer, Page
from .series import Series
from .stream_core import Silent, StreamOptions
from .transport import ApiWarning, CallOptions

__version__ = VERSION

__all__ = [
    "UNSET",
    "Answer",
    "ApiError",
    "ApiWarning",
    "AsyncAt",
    "AsyncOddswire",
    "At",
    "CallOptions",
    "DeadlineError",
    "Instant",
    "Moment",
    "NoHistoryError",
    "Number",
    "Oddswire",
    "OddswireError",
    "Page",
    "Series",
    "Silent",
    "StreamOptions",
    "TransportError",
    "UnknownReceiptError",
    "Unset",
    "asof_join",
    "errors",
    "models",
    "webhooks",
]
