package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/internal/pgdial"
	"github.com/kuberewind/kuberewind/migrations"
)

// SessionName is the name of the sessions of a Sink's own pool.
const SessionName = "kuberewind writer"

// NewPool returns the connection pool of a recorder. Its sessions work as the role kuberewind_writer if they may (I8),
// and wait for the disk when they commit. The server ends them soon after this process becomes unreachable, so that an
// open transaction does not block its successor. Sessions have the name in pg_stat_activity, unless the URL sets an
// application_name. NewPool makes no connection yet.
func NewPool(ctx context.Context, url, name string) (*pgxpool.Pool, error) {
	return newPool(ctx, url, 1, func(ctx context.Context, conn *pgx.Conn) error {
		if err := setSession(ctx, conn, name); err != nil {
			return err
		}
		_, err := migrations.BecomeWriter(ctx, conn)
		return err
	})
}

// NewCounterPool returns a pool as NewPool does, whose sessions work as the role kuberewind_counter and read. If a
// session may not become that role, connecting fails. The pool has room for at least two connections.
func NewCounterPool(ctx context.Context, url, name string) (*pgxpool.Pool, error) {
	return newPool(ctx, url, 2, func(ctx context.Context, conn *pgx.Conn) error {
		if err := setSession(ctx, conn, name); err != nil {
			return err
		}
		// With a custom plan, the planner knows the bounds of each query and opens few partitions.
		if _, err := conn.Exec(ctx, `SET plan_cache_mode = force_custom_plan; SET jit = off`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("set up the session: %w", err)
		}
		able, err := migrations.BecomeCounter(ctx, conn)
		if err == nil && !able {
			err = fmt.Errorf("this login may not become %s: run \"recorder migrate\" as the owner of the record, and the SQL that it prints", migrations.CounterRole)
		}
		return err
	})
}

// newPool returns a pool that allows at least so many connections. begin prepares each session.
func newPool(ctx context.Context, url string, least int32, begin func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	config, err := pgdial.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database's URL: %w", err)
	}
	pgdial.EndSilence(config.ConnConfig)
	// A connection that is still being made counts in the pool, even after its caller has given up, and the pool may
	// have few. Without a timeout, a connection that the server never answers would take its place for ever.
	patience := config.ConnConfig.ConnectTimeout
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
		defer cancel()
		return begin(ctx, conn)
	}
	config.MaxConns = max(config.MaxConns, least)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database's connections: %w", err)
	}
	return pool, nil
}

// sessionSettings are set by a statement and not in the startup message, which poolers may refuse. An operator's choice
// to wait for replicas is kept. A choice not to wait for the disk is overridden, because a position must not be ahead
// of the data on disk (I1).
const sessionSettings = `
	SELECT set_config('application_name', coalesce(nullif(current_setting('application_name'), ''), $1), false),
		set_config('idle_in_transaction_session_timeout', '30s', false),
		set_config('tcp_keepalives_idle', '10', false),
		set_config('tcp_keepalives_interval', '5', false),
		set_config('tcp_keepalives_count', '4', false),
		set_config('tcp_user_timeout', '30000', false),
		set_config('timezone', 'UTC', false),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`

func setSession(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, sessionSettings, pgx.QueryExecModeExec, name); err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	return nil
}
