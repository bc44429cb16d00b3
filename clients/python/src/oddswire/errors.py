"""The errors of this package. Each stable code of the API has a class, and related codes share a parent.

OddswireError
├── ApiError                    an answer that reports an error: `status`, `code`, `details`, `request_id`
│   ├── BadRequestError         the request is wrong: 400, 405, 413, 414, 415, 416, 421, 426
│   ├── AuthenticationError     the key is missing, unknown or revoked
│   ├── ForbiddenError          the key or the account may not do this
│   ├── NotFoundError           the thing does not exist, or is not stored yet
│   ├── ConflictError           the state of the thing, or of an earlier request, is in the way
│   ├── LimitError              too many requests: 429
│   ├── ServerError             the service could not answer: 500, 503
│   └── UnexpectedAnswerError   the answer is not from oddswire, such as that of a proxy
├── TransportError              no whole answer arrived
│   └── AttemptTimeoutError     not within the limit of one attempt
├── DeadlineError               the call with all its attempts took longer than its deadline
├── NoHistoryError              what was known at a moment is not recorded
└── UnknownReceiptError         trades have no time of receipt
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .models import ErrorDetail


class OddswireError(Exception):
    """Any error of this package, except wrong arguments, which are `ValueError` or `TypeError`."""

    retryable: bool = False
    """Whether the same request may succeed later."""


class ApiError(OddswireError):
    """An answer that reports an error."""

    code_of_class: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        details: Sequence[ErrorDetail] = (),
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status."""
        self.code = code
        """The stable code of the API, also one that this version does not know; `unexpected_answer` for another server."""
        self.details = tuple(details)
        """One per fault in the input: `path` names the parameter or field, `message` the reason."""
        self.request_id = request_id
        """The id of the request in the logs of the service."""
        self.retry_after = retry_after
        """Seconds from `Retry-After`."""
        # 409 with Retry-After: a request with the same Idempotency-Key is in flight.
        self.retryable = status in (429, 503) or (status == 409 and retry_after is not None)


class BadRequestError(ApiError):
    """The request is wrong; `details` states where."""


class InvalidRequestError(BadRequestError):
    code_of_class = "invalid_request"


class InvalidJsonError(BadRequestError):
    code_of_class = "invalid_json"


class InvalidCursorError(BadRequestError):
    """A cursor of another list, or with other filters."""

    code_of_class = "invalid_cursor"


class DifferentCurrenciesError(BadRequestError):
    code_of_class = "different_currencies"


class MethodNotAllowedError(BadRequestError):
    code_of_class = "method_not_allowed"


class PayloadTooLargeError(BadRequestError):
    code_of_class = "payload_too_large"


class UriTooLongError(BadRequestError):
    code_of_class = "uri_too_long"


class UnsupportedMediaTypeError(BadRequestError):
    code_of_class = "unsupported_media_type"


class RangeNotSatisfiableError(BadRequestError):
    code_of_class = "range_not_satisfiable"


class MisdirectedRequestError(BadRequestError):
    code_of_class = "misdirected_request"


class UpgradeRequiredError(BadRequestError):
    code_of_class = "upgrade_required"


class AuthenticationError(ApiError):
    """The key is missing, unknown, expired or revoked."""

    code_of_class = "unauthorized"


class ForbiddenError(ApiError):
    """The key or the account may not do this."""


class InsufficientScopeError(ForbiddenError):
    code_of_class = "insufficient_scope"


class QuotaExceededError(ForbiddenError):
    """The account has as many of these as it may have."""

    code_of_class = "quota_exceeded"


class CrossOriginError(ForbiddenError):
    code_of_class = "cross_origin"


class NotFoundError(ApiError):
    """The thing does not exist, or is not stored yet."""

    code_of_class = "not_found"


class VenueNotFoundError(NotFoundError):
    code_of_class = "venue_not_found"


class MarketNotFoundError(NotFoundError):
    code_of_class = "market_not_found"


class EventNotFoundError(NotFoundError):
    code_of_class = "event_not_found"


class OrderbookNotAvailableError(NotFoundError):
    code_of_class = "orderbook_not_available"


class OrderbookNotSupportedError(NotFoundError):
    code_of_class = "orderbook_not_supported"


class NoDataYetError(NotFoundError):
    """Nothing is stored, or nothing was known at the moment of `as_of`."""

    code_of_class = "no_data_yet"


class WebhookNotFoundError(NotFoundError):
    code_of_class = "webhook_not_found"


class AlertNotFoundError(NotFoundError):
    code_of_class = "alert_not_found"


class BacktestNotFoundError(NotFoundError):
    code_of_class = "backtest_not_found"


class WalletNotFoundError(NotFoundError):
    code_of_class = "wallet_not_found"


class KeyNotFoundError(NotFoundError):
    code_of_class = "key_not_found"


class ArchiveOffError(NotFoundError):
    """The service has no archive."""

    code_of_class = "archive_off"


class ArchiveFileNotFoundError(NotFoundError):
    code_of_class = "archive_file_not_found"


class ConflictError(ApiError):
    """The state of the thing is in the way, or the first request with this Idempotency-Key is in flight."""

    code_of_class = "conflict"


class IdempotencyMismatchError(ConflictError):
    """An earlier request with this Idempotency-Key had another input."""

    code_of_class = "idempotency_mismatch"


class BacktestNeedsJobError(ConflictError):
    """The backtest is too large to be answered at once, or another one of the account runs."""

    code_of_class = "backtest_needs_job"


class LimitError(ApiError):
    """Too many requests."""


class RateLimitedError(LimitError):
    code_of_class = "rate_limited"


class ArchiveQuotaExceededError(LimitError):
    code_of_class = "archive_quota_exceeded"


class ServerError(ApiError):
    """The service could not answer."""


class InternalServiceError(ServerError):
    code_of_class = "internal_error"


class NotReadyError(ServerError):
    code_of_class = "not_ready"


class ArchiveUnavailableError(ServerError):
    code_of_class = "archive_unavailable"


class UnexpectedAnswerError(ApiError):
    """The answer is not from oddswire, such as that of a proxy."""

    code_of_class = "unexpected_answer"


class TransportError(OddswireError):
    """No whole answer arrived. `__cause__` is the error of the connection."""

    retryable = True


class AttemptTimeoutError(TransportError):
    """No whole answer arrived within the limit of one attempt."""


class DeadlineError(OddswireError):
    """The call with all its attempts took longer than its deadline. `__cause__` is the last failure, if one came before it."""


class NoHistoryError(OddswireError):
    """The past state of this is not recorded, so its present state would show what was not known then."""


class UnknownReceiptError(OddswireError):
    """Trades have no time of receipt, so it is not known when they were known."""


def _classes(parent: type[ApiError]) -> dict[str, type[ApiError]]:
    found = {parent.code_of_class: parent} if "code_of_class" in vars(parent) else {}
    for child in parent.__subclasses__():
        found |= _classes(child)
    return found


CLASS_OF_CODE = {code: found for code, found in _classes(ApiError).items() if code}
"""The class of each code that this version knows."""


def class_of(code: str, status: int) -> type[ApiError]:
    """The class of a code, or of its status when the code is of a later version of the service."""
    known = CLASS_OF_CODE.get(code)
    if known is not None:
        return known
    of_status = {401: AuthenticationError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError, 429: LimitError}
    return of_status.get(status, ServerError if status >= 500 else BadRequestError if status >= 400 else ApiError)
