"""Listeners, routing, drain, workers.

listening   sockets, and the connections behind them
admin       /metrics, /healthz and /readyz
ending      signals, and waits that they cut short
server      the proxy in one process
supervisor  the process above several workers
worker      one of them
"""

from proxy.server.server import Server, started
from proxy.server.supervisor import StartError, Supervisor

__all__ = ["Server", "StartError", "Supervisor", "started"]
