"""The upstream's side: open, stream, close, pool."""

from proxy.upstream.connection import Connection, Fault, Head, Sink
from proxy.upstream.pool import ConnectError, ConnectFault, Origin, Pool

__all__ = ["ConnectError", "ConnectFault", "Connection", "Fault", "Head", "Origin", "Pool", "Sink"]
