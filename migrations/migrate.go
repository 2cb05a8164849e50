package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgerrcode"
)

const (
	// lockTimeout bounds how long a migration waits for a lock, and so how long it blocks the sessions that wait behind
	// it.
	lockTimeout = 5 * time.Second
	// lockPause is the time between two attempts, in which the queue behind the migration empties.
	lockPause = time.Second
)

// errFilledCode is the SQLSTATE that guard raises.
const errFilledCode = "KR001"

// guard precedes each migration down, in its transaction. Its lock keeps recorders from committing until it has
// decided.
const guard = `DO $$
BEGIN
    LOCK TABLE kuberewind.heads IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM kuberewind.deltas_data) THEN
        RAISE EXCEPTION 'the record holds deltas' USING ERRCODE = 'KR001';
    END IF;
END $$;
`

// Up brings the schema of the database to the version that this program knows. If the schema is up to date, any role
// that may read the version can call Up. The url is a PostgreSQL URL or key=value string, and may have pgxpool's
// parameters. Up waits for locks and for other migrators until ctx ends, and logs that. It does not set rights: call
// Roles afterwards.
func Up(ctx context.Context, url string, log *slog.Logger) error {
	return move(ctx, url, log, Latest(), "")
}

// Down removes the record with all its data. Unless forced, it returns ErrFilled if there is any delta.
func Down(ctx context.Context, url string, force bool) error {
	before := guard
	if force {
		before = ""
	}
	err := move(ctx, url, slog.New(slog.DiscardHandler), 0, before)
	if hasCode(err, errFilledCode) {
		return fmt.Errorf("%w: removing its schema would destroy every delta in it; to remove it anyway, force it", ErrFilled)
	}
	return err
}

// move applies migrations up or down to the target. Each is preceded by the SQL in before.
func move(ctx context.Context, url string, log *slog.Logger, target int, before string) error {
	err := apply(ctx, url, log, target, before)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("migrate the schema: %w (%w)", context.Cause(ctx), err)
	case hasCode(err, pgerrcode.InsufficientPrivilege) && !errors.Is(err, ErrNoRights):
		return fmt.Errorf("migrate the schema: %w (only the owner of the schema may do this, or, if there is no schema, a role that may create schemas)", err)
	default:
		return fmt.Errorf("migrate the schema: %w", err)
	}
}

func apply(ctx context.Context, url string, log *slog.Logger, target int, before string) error {
	p, err := openProbe(ctx, url)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	own, err := p.ownership(ctx)
	if err == nil {
		err = own.mayRead()
	}
	if err != nil {
		return err
	}
	version, err := Version(ctx, p.conn)
	if err != nil || version == target {
		return err
	}
	if err := usable(version); err != nil {
		return err
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	return retryLocks(ctx, log, func() error {
		return p.steps(ctx, version, target, before, log)
	})
}

// retryLocks repeats f while it fails because it did not get a lock.
func retryLocks(ctx context.Context, log *slog.Logger, f func() error) error {
	for {
		err := f()
		if !hasCode(err, pgerrcode.LockNotAvailable, pgerrcode.DeadlockDetected) {
			return err
		}
		log.WarnContext(ctx, "another session uses the schema; the migration waits", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockPause):
		}
	}
}

// steps applies one migration after another until the version is target or past it.
func (p *probe) steps(ctx context.Context, from, target int, before string, log *slog.Logger) error {
	s, err := p.open(ctx, before, log)
	if err != nil {
		return err
	}
	defer s.close()
	direction := 1
	if target < from {
		direction = -1
	}
	for {
		version, err := Version(ctx, p.conn)
		if err != nil {
			return err
		}
		if err := usable(version); err != nil || (target-version)*direction <= 0 {
			return err
		}
		log.InfoContext(ctx, "migrating the schema", "version", version, "target", target)
		// golang-migrate returns ErrNotExist if another migrator has meanwhile taken the last step.
		if err := s.migrate.Steps(direction); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return plain(err)
		}
	}
}

// usable rejects the schema of a newer program, which may have been made while this migrator waited, and of a
// development build.
func usable(version int) error {
	if err := compare(version, Latest()); errors.Is(err, ErrNewer) || errors.Is(err, ErrUnreleased) {
		return err
	}
	return nil
}
