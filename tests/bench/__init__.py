"""What the proxy costs, beside nginx with a Lua body filter that does the same work. Printed, never gating.

`tests/bench/run` measures over sockets: `upstream` paces events, `peers` starts what is compared, `load` takes the
answers and checks them, `measure` alternates the peers, `__main__` prints. `micro` measures the rewriter alone.
"""
