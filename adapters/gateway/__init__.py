"""The gateway runtime: runs jobs, holds their leases, sweeps what is dead, drains."""

from unswept.adapters.gateway.config import describe, load
from unswept.adapters.gateway.errors import (
    AdmissionError,
    ConfigError,
    DrainingError,
    GatewayError,
    JobNotFoundError,
    SaturationError,
)
from unswept.adapters.gateway.facade import SyncGateway, Ticket
from unswept.adapters.gateway.gateway import CancelVerdict, Gateway, Health, JobHandle
from unswept.adapters.gateway.observer import Fact, Observer
from unswept.adapters.gateway.opening import open_gateway
from unswept.adapters.gateway.readback import Output, Snapshot
from unswept.adapters.gateway.settings import Settings
from unswept.adapters.gateway.signals import drain_when_signaled
from unswept.adapters.gateway.work import Answer, CallWork, OnOrphaned, ProcessWork

__all__ = [
    "AdmissionError",
    "Answer",
    "CallWork",
    "CancelVerdict",
    "ConfigError",
    "DrainingError",
    "Fact",
    "Gateway",
    "GatewayError",
    "Health",
    "JobHandle",
    "JobNotFoundError",
    "Observer",
    "OnOrphaned",
    "Output",
    "ProcessWork",
    "SaturationError",
    "Settings",
    "Snapshot",
    "SyncGateway",
    "Ticket",
    "describe",
    "drain_when_signaled",
    "load",
    "open_gateway",
]
