# syntax=docker/dockerfile:1
# docker build -t cuebook . ; docs/deploy.md says how to run it.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --release --bin cuebook \
    && install -D target/release/cuebook /out/cuebook

FROM debian:bookworm-slim
# git serves clones and pushes; ssh and the certificates are for a repository that is followed
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes ca-certificates git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 cuebook \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin cuebook \
    && install --directory --owner 10001 --group 10001 --mode 0700 /data
COPY --from=build /out/cuebook /usr/local/bin/cuebook
COPY scripts/health /usr/local/bin/cuebook-health
USER 10001:10001
VOLUME /data
# whoever can reach the port must say who they are
ENV CUEBOOK_DATA_DIR=/data \
    CUEBOOK_LISTEN=0.0.0.0:8400 \
    CUEBOOK_ACCESS_ENABLED=true
EXPOSE 8400
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s CMD ["cuebook-health"]
ENTRYPOINT ["cuebook"]
CMD ["serve"]
