// Command pgdata makes the data directory that internal/pgdata copies for each PostgreSQL of a test.
//
//	pgdata DIR   replaces the content of DIR
//
// The server runs in a temporary folder. If root runs this command, PostgreSQL runs under another account, which may have no access to DIR.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgdata"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pgdata DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := replace(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "make a data directory of PostgreSQL for the tests:", err)
		stop()
		os.Exit(1)
	}
}

// replace always makes a new folder. The PostgreSQL binaries may have another version than those that made the old folder.
func replace(ctx context.Context, dir string) (err error) {
	temp, err := os.MkdirTemp("", "kuberewind-pgdata-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := os.Chmod(temp, 0o711); err != nil {
		return err
	}
	made := filepath.Join(temp, "postgres")
	if err := run(ctx, made); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	return pgdata.Copy(made, dir)
}

// run starts a server in a folder and stops it.
func run(ctx context.Context, dir string) error {
	server, err := embedded.Start(ctx, embedded.Options{DataDir: dir, Throwaway: true})
	if err != nil {
		return err
	}
	return server.Stop(context.WithoutCancel(ctx))
}
