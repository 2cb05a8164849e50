// Package succession is whether and when this recorder takes over a cluster: its election, and what an operator wants to know of a standby.
//
// A standby makes no schema and opens no record. It checks whether it could take over, and ends at once if it could not.
//
// It has no goroutine and no lock of its own: those are the election's.
package succession

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Candidate is a recorder that would record a cluster.
type Candidate struct {
	Config   config.Config
	Database *database.Database
	Cluster  string              // its UID
	Lease    *election.Lease     // nil if none is configured
	Standby  func(leader string) // told at each look at which another leads
	Log      *slog.Logger
}

// Elect returns when this recorder is the leader of the cluster. Until then it stands by. The embedded database has refused other
// recorders already. The row of the leader tells auditors there, too, that it records. The caller closes the election.
func (c *Candidate) Elect(ctx context.Context) (*election.Election, error) {
	options := election.Options{
		Cluster: c.Cluster, Identity: election.Name(), Connect: c.Database.ConnectWith, ClaimFile: filepath.Join(c.Config.DataDir, "leadership", c.Cluster),
		Term: c.Config.LeaseDuration, Lease: c.Lease, Log: c.Log,
	}
	e, err := election.Start(ctx, options)
	if incomplete(err) {
		// The row of the leader is part of the record. The first recorder makes it.
		if err := c.Database.Ready(ctx, c.Config.Migrate); err != nil {
			return nil, err
		}
		e, err = election.Start(ctx, options)
	}
	if err != nil {
		return nil, c.Database.Refused(err)
	}
	if err := e.Await(ctx, c.standBy); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (c *Candidate) standBy(ctx context.Context, leader string) error {
	c.Standby(leader)
	return c.check(ctx)
}

// incomplete says whether an error comes from a database without a record, or without the rights that go with it.
func incomplete(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) &&
		(refused.Code == pgerrcode.UndefinedTable || refused.Code == pgerrcode.InvalidSchemaName || refused.Code == pgerrcode.InsufficientPrivilege)
}

// check checks whether this recorder could take over. An operator wants to know that before the leader is gone.
func (c *Candidate) check(ctx context.Context) error {
	conn, err := c.Database.Connect(ctx)
	if err != nil {
		return nil // The election says so.
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	recorded, err := database.KeyOf(ctx, conn, c.Cluster)
	if err != nil || recorded == nil {
		return nil // There is no record yet, or the database is away.
	}
	file, err := redact.ReadKey(c.Config.KeyFile())
	key := file.Of(c.Cluster)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("this recorder could not take over: %s does not exist, and the cluster is recorded with a key (fingerprint %x): "+
			"give each recorder the same file, with --redaction-key-file", c.Config.KeyFile(), recorded)
	case err != nil:
		return err
	case !bytes.Equal(recorded, key.Fingerprint()):
		return fmt.Errorf("this recorder could not take over: %s is another key (fingerprint %x) than the one with which the cluster is recorded (%x): "+
			"give each recorder the same file, with --redaction-key-file", c.Config.KeyFile(), key.Fingerprint(), recorded)
	}
	return nil
}

// Fenced returns ErrFenced if the record is another recorder's. A database that cannot be asked is no reason to end: it is away, and the
// question comes again.
func Fenced(ctx context.Context, record interface{ Holds(context.Context) error }, log *slog.Logger) error {
	err := record.Holds(ctx)
	if err != nil && !errors.Is(err, postgres.ErrFenced) {
		log.Debug("it was not found out whether the record is still this recorder's; asking again", "error", config.Plain(err))
		return nil
	}
	return err
}
