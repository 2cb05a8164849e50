package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/embedded"
)

// stopPatience bounds how long a server may take to stop, also after an interrupt.
const stopPatience = time.Minute

// OnServer runs something on a PostgreSQL of its own under a folder, and removes it. It has the settings of the embedded one, waits for its
// disk at each commit, and dates commits.
func OnServer(ctx context.Context, parent string, do func(*Server) error) (err error) {
	dir, err := os.MkdirTemp(parent, "kuberewind-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // as root the server runs under another account
		return err
	}
	options := embedded.Options{DataDir: filepath.Join(dir, "postgres")}
	server, err := embedded.Start(ctx, options)
	if err != nil {
		return err
	}
	stop := func() error {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		return server.Stop(stopping)
	}
	defer func() { err = errors.Join(err, stop()) }()
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER SYSTEM SET track_commit_timestamp = on")
	if err := errors.Join(err, conn.Close(ctx), stop()); err != nil {
		return err
	}
	if server, err = embedded.Start(ctx, options); err != nil {
		return err
	}
	return do(&Server{URL: server.URL(), PID: server.PID()})
}
