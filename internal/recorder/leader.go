package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// elect returns when this recorder is the leader of the cluster. Until then it stands by. The embedded database has refused other
// recorders already. The row of the leader tells auditors there, too, that it records.
//
// A standby makes no schema and opens no record. It logs once that it stands by, and tells so in an Event. It also checks whether
// it could take over. If it could not, it ends at once.
func (r *Recorder) elect(ctx context.Context, uid string, lease *election.Lease) (err error) {
	options := election.Options{
		Cluster: uid, Identity: election.Name(), Connect: r.database.ConnectWith, ClaimFile: filepath.Join(r.cfg.DataDir, "leadership", uid), Term: r.cfg.LeaseDuration,
		Lease: lease, Log: r.log,
	}
	r.election, err = election.Start(ctx, options)
	if incomplete(err) {
		// The row of the leader is part of the record. The first recorder makes it.
		if err := r.database.Ready(ctx, r.cfg.Migrate); err != nil {
			return err
		}
		r.election, err = election.Start(ctx, options)
	}
	if err != nil {
		return r.database.Refused(err)
	}
	return r.election.Await(ctx, func(ctx context.Context, leader string) error {
		if !r.readiness.standby.Swap(true) {
			r.log.Info("standby: another recorder records this cluster", "leader", leader)
			r.notices.Normal("Standby", fmt.Sprintf("%s stands by: %s records", election.Name(), leader))
		}
		return r.checkSuccession(ctx, uid)
	})
}

// incomplete says whether an error comes from a database without a record, or without the rights that go with it.
func incomplete(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) &&
		(refused.Code == pgerrcode.UndefinedTable || refused.Code == pgerrcode.InvalidSchemaName || refused.Code == pgerrcode.InsufficientPrivilege)
}

// checkSuccession checks whether this recorder could take over. An operator wants to know that before the leader is gone.
func (r *Recorder) checkSuccession(ctx context.Context, uid string) error {
	conn, err := r.database.Connect(ctx)
	if err != nil {
		return nil // The election says so.
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	recorded, err := database.KeyOf(ctx, conn, uid)
	if err != nil || recorded == nil {
		return nil // There is no record yet, or the database is away.
	}
	file, err := redact.ReadKey(r.cfg.KeyFile())
	key := file.Of(uid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("this recorder could not take over: %s does not exist, and the cluster is recorded with a key (fingerprint %x): "+
			"give each recorder the same file, with --redaction-key-file", r.cfg.KeyFile(), recorded)
	case err != nil:
		return err
	case !bytes.Equal(recorded, key.Fingerprint()):
		return fmt.Errorf("this recorder could not take over: %s is another key (fingerprint %x) than the one with which the cluster is recorded (%x): "+
			"give each recorder the same file, with --redaction-key-file", r.cfg.KeyFile(), key.Fingerprint(), recorded)
	}
	return nil
}

// fenced returns ErrFenced if the record is another recorder's. A database that cannot be asked is no reason to end: it is away, and the
// question comes again.
func (r *Recorder) fenced(ctx context.Context) error {
	err := r.sink.Holds(ctx)
	if err != nil && !errors.Is(err, postgres.ErrFenced) {
		r.log.Debug("it was not found out whether the record is still this recorder's; asking again", "error", config.Plain(err))
		return nil
	}
	return err
}
