# The hub, and a runner. Build them with
#   docker build --target hub --tag quarterdeck-hub .
#   docker build --target runner --tag quarterdeck-runner .
# Both run as a user without rights. The hub has no Claude Code: agents run where a runner is.
# The hub ends with the code 75 when its database was restored or another server took over: start it again
# then (`restart: unless-stopped` in compose.yaml). /healthz answers 503 while the database is away.

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY requirements/dev.lock requirements/sbom.cdx.json requirements/
COPY src src
COPY web web
# The wheel has the web app in it; Node comes with the build's requirements. What is installed with
# it has the versions that the tests ran with; `--no-deps` takes no hash for what is not needed.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && sed -e 's/ *\\$//' -e '/^ *--hash/d' requirements/dev.lock > /wheels/constraints.txt

FROM python:3.11-slim AS hub
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt \
      "quarterdeck[postgres] @ file://$(ls /wheels/quarterdeck-*.whl)" \
 && rm -rf /wheels \
 && useradd --uid 10001 --create-home --home-dir /home/quarterdeck quarterdeck \
 && install --directory --owner quarterdeck --mode 0700 /data
ENV QUARTERDECK_HOME=/data
VOLUME /data
WORKDIR /data
USER 10001
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=2)"]
ENTRYPOINT ["quarterdeck"]
CMD ["serve", "--host", "0.0.0.0", "--no-runner", "--no-login-link"]

FROM hub AS runner
ARG CLAUDE_CODE=2.1.325
USER 0
# Debian keeps only the newest version of a package, so none is named.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git nodejs npm \
 && npm install --global --no-fund --no-audit "@anthropic-ai/claude-code@${CLAUDE_CODE}" \
 && rm -rf /var/lib/apt/lists/* /root/.npm \
 && install --directory --owner quarterdeck --mode 0755 /work
USER 10001
WORKDIR /home/quarterdeck
HEALTHCHECK NONE
CMD ["runner", "--help"]
