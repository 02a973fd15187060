# The coordinator as a container image, built from a checkout: docker build -t boxwood .
# docs/install.md, Run in a container, has the command that starts it.
FROM node:24-trixie AS build
WORKDIR /source
COPY . .
RUN npm ci && npm run package /tmp \
 && npm install --global --prefix /opt/boxwood /tmp/boxwood-server-*.tgz

FROM debian:trixie-slim
# tini reaps the processes that boxes leave. The others are for local boxes: their isolation, archives and usual programs.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
    bubblewrap ca-certificates curl git procps slirp4netns tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 990 --user-group --home-dir /var/lib/boxwood --shell /usr/sbin/nologin boxwood \
 && install --directory --owner=boxwood --group=boxwood --mode=0700 /var/lib/boxwood
COPY --from=build /opt/boxwood /opt/boxwood
ENV PATH=/opt/boxwood/bin:$PATH \
    BOXWOOD_DATA=/var/lib/boxwood \
    BOXWOOD_LISTEN=0.0.0.0:7070
USER boxwood
VOLUME /var/lib/boxwood
EXPOSE 7070
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["curl", "--fail", "--silent", "--output", "/dev/null", "http://127.0.0.1:7070/readyz"]
ENTRYPOINT ["tini", "--", "boxwood"]
