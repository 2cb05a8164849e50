package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/internal/ctxerr"
	"github.com/kuberewind/kuberewind/migrations"
)

// rolesTimeout bounds a few statements, and waiting for other processes that run the same statements.
const rolesTimeout = time.Minute

// Migrate brings schema and roles up to date. If this login may not make the roles, it returns the SQL that an administrator must run.
func (d *Database) Migrate(ctx context.Context) (missing string, err error) {
	// Connect first: Up may wait for locks without a limit, but a server that does not answer is reported within connectTimeout.
	conn, err := d.Connect(ctx)
	if err != nil {
		return "", err
	}
	err = migrations.Up(ctx, d.URL(), d.log)
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, rolesTimeout, fmt.Errorf("checking and making the roles of the record took longer than %s", rolesTimeout))
		missing, err = migrations.Roles(limited, conn)
		if err != nil {
			err = ctxerr.Explain(limited, err)
		}
		cancel()
	}
	if err != nil {
		err = d.named(err)
	}
	return missing, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// Ready migrates the database if it is embedded or migrate is true. Else it checks that no migration is needed.
func (d *Database) Ready(ctx context.Context, migrate bool) error {
	if d.embedded != nil || migrate {
		missing, err := d.Migrate(ctx)
		if err == nil && missing != "" {
			d.log.Warn("the roles of the record are missing and this login may not make them; recorder migrate prints the SQL")
		}
		return err
	}
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, connectTimeout, errUnanswered)
	defer cancel()
	if err = migrations.Check(limited, conn); err != nil {
		err = d.named(ctxerr.Explain(limited, err))
	}
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}
