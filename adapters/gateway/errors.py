"""What a gateway refuses, as errors that say whether it is worth trying again."""

from __future__ import annotations

from unswept.core.errors import MisuseError, UnsweptError


class GatewayError(UnsweptError):
    """Base of what a gateway raises; no job runs on account of the call that raised it."""

    retryable = False


class AdmissionError(GatewayError):
    """The job was not admitted, so it does not run. The cause, if any, is the store's error."""

    retryable = True


class SaturationError(GatewayError):
    """All slots are taken and the queue is full. No row was written."""

    retryable = True


class DrainingError(GatewayError):
    """The gateway takes no new work any more."""


class JobNotFoundError(GatewayError):
    """No such job, or it is another principal's: the two look the same on purpose."""


class ConfigError(MisuseError):
    """A configuration that is refused, with the file or the variable that is to be changed."""
