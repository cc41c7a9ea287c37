"""One exchange: `life` leads; `request`, `target` and `refusals` are the way in, `answer` and `fallback` the way out.

`client` is the connection to the client, `shared` what all exchanges have in common, `tasks` where tasks begin.
"""

from proxy.exchange.client import ClientServer, Sent
from proxy.exchange.life import Exchange
from proxy.exchange.shared import Budget, Shared

__all__ = ["Budget", "ClientServer", "Exchange", "Sent", "Shared"]
