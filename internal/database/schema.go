package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/internal/ctxerr"
	"github.com/kuberewind/kuberewind/migrations"
)

// rolesTimeout is for a few statements, and waiting for others who do the same.
const rolesTimeout = time.Minute

// Migrate brings schema and roles up to date. It returns the SQL that somebody with more rights has to run for the roles.
func (d *Database) Migrate(ctx context.Context) (missing string, err error) {
	// Up waits for locks for as long as it takes. A server that is not there is named in time, by this.
	conn, err := d.Connect(ctx)
	if err != nil {
		return "", err
	}
	err = migrations.Up(ctx, d.URL(), d.log)
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, rolesTimeout, fmt.Errorf("the roles of the record were not looked up or made within %s", rolesTimeout))
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

// Ready migrates the database where that is allowed, else checks that it need not be.
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
