// Package succession decides whether and when this recorder takes over a cluster. It runs the election and checks a standby.
//
// A standby makes no schema and opens no record. It checks whether it could take over, and ends at once if it could not.
//
// The package has no goroutine and no lock. Those of the election belong to package election.
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
	Standby  func(leader string) // called once in a term while another recorder leads
	Log      *slog.Logger
}

// Elect returns when this recorder is the leader of the cluster. Until then it stands by. With an embedded database, [database.Database.Lock]
// has refused other recorders before. The election still writes the row of the leader there, because auditors read it. The caller
// closes the election.
func (c *Candidate) Elect(ctx context.Context) (*election.Election, error) {
	options := election.Options{
		Cluster: c.Cluster, Identity: election.Name(), Connect: c.Database.ConnectWith, ClaimFile: filepath.Join(c.Config.DataDir, "leadership", c.Cluster),
		Term: c.Config.LeaseDuration, Lease: c.Lease, Log: c.Log,
	}
	e, err := election.Start(ctx, options)
	if incomplete(err) {
		// The row of the leader is part of the schema. The first recorder makes the schema.
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

// incomplete reports whether an error comes from a database without the schema or without its rights.
func incomplete(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) &&
		(refused.Code == pgerrcode.UndefinedTable || refused.Code == pgerrcode.InvalidSchemaName || refused.Code == pgerrcode.InsufficientPrivilege)
}

// check returns an error if this recorder could not take over, so that an operator learns it while the leader still records.
func (c *Candidate) check(ctx context.Context) error {
	conn, err := c.Database.Connect(ctx)
	if err != nil {
		return nil // The election logs it.
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	recorded, err := database.KeyOf(ctx, conn, c.Cluster)
	if err != nil || recorded == nil {
		return nil // There is no record yet, or the database does not answer.
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
		return fmt.Errorf("this recorder could not take over: %s is another key (fingerprint %x) than the recorded one (%x): "+
			"give each recorder the same file, with --redaction-key-file", c.Config.KeyFile(), key.Fingerprint(), recorded)
	}
	return nil
}

// Fenced returns ErrFenced if another recorder has taken over the record. If the database does not answer, it returns nil: the leader
// goes on, and the election calls Fenced again.
func Fenced(ctx context.Context, record interface{ CheckFence(context.Context) error }, log *slog.Logger) error {
	err := record.CheckFence(ctx)
	if err != nil && !errors.Is(err, postgres.ErrFenced) {
		log.Debug("the check whether another recorder has taken over failed; retrying", "error", config.Plain(err))
		return nil
	}
	return err
}
