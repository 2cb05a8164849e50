package parts

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// A cost is the time of something: on the clock, of the CPU of its process, and of PostgreSQL's CPU.
type cost struct{ clock, client, server time.Duration }

// costOf does something in this process. Earlier work, such as opening a sink, is not in its cost.
func costOf(server *measure.Server, do func() error) (c cost, err error) {
	client, err := measure.CPUOfSelf()
	if err != nil {
		return c, err
	}
	postgres, err := measure.CPUOfTree(server.PID)
	if err != nil {
		return c, err
	}
	started := time.Now()
	if err = do(); err != nil {
		return c, err
	}
	c.clock = time.Since(started)
	if c.server, err = measure.CPUOfTree(server.PID); err != nil {
		return c, err
	}
	c.server -= postgres
	c.client, err = measure.CPUOfSelf()
	c.client -= client
	return c, err
}

// each is CPU time in microseconds, for each of so many rows.
func each(used time.Duration, rows float64) float64 { return float64(used.Microseconds()) / rows }

// logged does something and says how many bytes of log the server has written meanwhile.
func logged(ctx context.Context, database string, do func() error) (bytes float64, err error) {
	return bytes, on(ctx, database, func(db *pgx.Conn) error {
		var from, to int64
		const position = `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`
		if err := db.QueryRow(ctx, position).Scan(&from); err != nil {
			return err
		}
		if err := do(); err != nil {
			return err
		}
		err := db.QueryRow(ctx, position).Scan(&to)
		bytes = float64(to - from)
		return err
	})
}
