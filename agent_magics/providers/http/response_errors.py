"""The errors that a server's responses become: one sentence each, the server's words in it."""

from __future__ import annotations

import msgspec

from agent_magics.core.errors import ContextOverflow, ProviderError, StreamInterrupted
from agent_magics.core.redact import key_end, redact
from agent_magics.providers.http.endpoint import Endpoint
from agent_magics.providers.http.faults import FIRST_ERROR, Fault, read_fault
from agent_magics.providers.http.json_values import JSONObject
from agent_magics.providers.http.response import StreamedResponse

MAX_ERROR_BYTES = 200_000
MAX_MESSAGE_CHARACTERS = 600
FIRST_NOT_OK = 300
_SHOWN_ADDRESS_CHARACTERS = 300


class ResponseErrors:
    """Makes errors of one server's responses; `key_name` is where its key came from."""

    def __init__(self, endpoint: Endpoint, key_name: str | None) -> None:
        self._endpoint = endpoint
        self._key_name = key_name

    @property
    def server(self) -> str:
        """What messages call the server."""
        return self._endpoint.name

    async def of(self, response: StreamedResponse) -> ProviderError:
        """Return what a response that is no stream means."""
        name = self._endpoint.name
        if FIRST_NOT_OK <= response.status < FIRST_ERROR:
            return self._redirected(response)
        body = await response.read(MAX_ERROR_BYTES)
        if response.status < FIRST_NOT_OK and not body.strip():
            return StreamInterrupted(f"{name} answered with nothing; try again.")
        error = self.of_body(response.status, body)
        error.retry_after_s = response.retry_after_s
        return error

    def of_body(self, status: int, body: bytes | str | JSONObject | list[object]) -> ProviderError:
        """Judge an error body, or an error that came in a stream (status 200)."""
        # Redacted before it is cut: half a key isn't recognised any more.
        fault = read_fault(status, body)
        return error_of(
            msgspec.structs.replace(fault, message=self._endpoint.redacted(fault.message)),
            provider=self._endpoint.name,
            key=self._endpoint.api_key,
            key_name=self._key_name,
        )

    def _redirected(self, response: StreamedResponse) -> ProviderError:
        place = self._endpoint.redacted(response.location)
        to = f" to {place[:_SHOWN_ADDRESS_CHARACTERS]}" if place else ""
        return ProviderError(
            f"{self._endpoint.name} sends us on{to} ({response.status}); use that base URL. The"
            " key is not sent to a place it was not meant for.",
            status=response.status,
        )


def error_of(
    fault: Fault, *, provider: str, key: str | None = None, key_name: str | None = None
) -> ProviderError:
    """Return the error to raise: one sentence, the server's words in it, keys redacted."""
    words = _cut(redact(fault.message, [key]))
    said = f": {words}" if words else "."
    number = f" ({fault.status})" if (fault.status or 0) >= FIRST_ERROR else ""
    match fault.kind:
        case "input_overflow":
            error = ContextOverflow(
                f"The request is longer than {provider}'s model allows{number}{said}",
                window=fault.window,
                used=fault.used,
            )
            error.status = fault.status
            return error
        case "auth":
            text = _auth_sentence(provider, number, words, key, key_name)
        case "quota":
            text = f"{provider} has no room for this request now{number}{said}"
        case "body_size":
            text = f"The request has too many bytes for {provider}{number}{said}"
        case "output_reservation":
            text = f"max_tokens is too large for what is left of {provider}'s window{number}{said}"
        case "malformed_history":
            text = (
                f"{provider} refused the shape of the conversation{number}{said}"
                " This is a fault of agent-magics; please report it."
            )
        case "other":
            text = f"{provider} failed{number}{said}"
    return ProviderError(
        text,
        retryable=fault.may_pass,
        status=fault.status,
        kind=fault.kind,
        window=fault.window,
        used=fault.used,
    )


def _auth_sentence(
    provider: str, number: str, words: str, key: str | None, key_name: str | None
) -> str:
    if not key:
        where = f"set {key_name}" if key_name else "give it one"
        return (
            f"{provider} wants a key{number}: {where}, or choose another model with %agent model."
        )
    named = f"The key in {key_name}" if key_name else "The key"
    said = "" if number == " (401)" or not words else f": {words.rstrip('.')}"
    return (
        f"{provider} refused the key{number}{said}. {named} ends in {key_end(key)};"
        " check it, or choose another model with %agent model."
    )


def _cut(text: str) -> str:
    """Cut what is long; only after keys were taken out, for half a key isn't recognised."""
    is_long = len(text) > MAX_MESSAGE_CHARACTERS
    return text[:MAX_MESSAGE_CHARACTERS] + "…" if is_long else text
