# docker build -t logprob-proxy .
# docker run --rm -p 6520:6520 logprob-proxy serve --upstream https://api.openai.com/v1

FROM python:3.12-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# The environment has no pip of its own: nothing in the image can install anything.
RUN python -m venv --without-pip /app
# Dependencies first: this layer changes only with the lock.
COPY deploy/requirements.txt deploy/requirements-build.txt ./
RUN pip --python /app/bin/python install --require-hashes -r requirements.txt \
 && pip install --require-hashes -r requirements-build.txt
COPY pyproject.toml README.md ./
COPY proxy proxy
RUN pip wheel --no-deps --no-build-isolation --wheel-dir wheels . \
 && pip --python /app/bin/python install --no-deps wheels/*.whl

FROM python:3.12-slim
COPY --from=build /app /app
# Inside a container, loopback is nobody; who may connect is decided by what is published.
ENV PATH=/app/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LOGPROB_PROXY_LISTEN=0.0.0.0:6520 \
    LOGPROB_PROXY_ADMIN=0.0.0.0:6521
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 6520 6521
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 6521, timeout=2); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["logprob-proxy"]
CMD ["serve"]
