FROM golang:1.26 AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOFLAGS=-trimpath
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN go build -ldflags "-s -w -X github.com/kuberewind/kuberewind/internal/version.version=${VERSION}" -o /out/ ./cmd/recorder
# The redaction key is kept here. Whoever the recorder runs as may make its file, and only the maker may touch it. The
# folder is copied by way of its parents: COPY gives the target folder itself to root, mode 0755.
RUN mkdir -p /root-fs/var/lib/kuberewind && chmod 1777 /root-fs/var/lib/kuberewind

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /root-fs/ /
COPY --from=build /out/recorder /usr/local/bin/
USER 65532:65532
# There is no PostgreSQL in this image: RECORDER_DATABASE must name one.
ENV RECORDER_DATA_DIR=/var/lib/kuberewind RECORDER_LISTEN=0.0.0.0:9464 RECORDER_LOG_FORMAT=json
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/recorder"]
CMD ["run"]
