// Command pgdata makes the data directory that internal/pgdata copies for each PostgreSQL of a test.
//
//	pgdata DIR   replaces the content of DIR
//
// The server runs in a temporary folder. If root runs this command, PostgreSQL runs under another account, which may have no access to DIR.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"

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
	return errors.Join(hasten(ctx, server.URL()), server.Stop(context.WithoutCancel(ctx)))
}

// hasten gives the login of a URL its own password once more, with one iteration of the hash in the place of 4,096. The tests connect
// thousands of times, and each connection computes the hash under the race detector.
func hasten(ctx context.Context, address string) (err error) {
	db, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	verifier, err := scram(db.Config().Password)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", pgx.Identifier{db.Config().User}.Sanitize(), verifier))
	return err
}

// scram returns the form in which PostgreSQL stores a password for SCRAM-SHA-256 (RFC 5802), with one iteration.
func scram(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // It never fails.
	salted, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	if err != nil {
		return "", err
	}
	key := func(name string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(name))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(key("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", text(salt), text(stored[:]), text(key("Server Key"))), nil
}
