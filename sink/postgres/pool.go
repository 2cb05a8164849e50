package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/internal/pgdial"
	"github.com/kuberewind/kuberewind/migrations"
)

// SessionName is what the sessions of a Sink's own pool are called.
const SessionName = "kuberewind writer"

// NewPool makes the connections of a recorder. They work as the role kuberewind_writer if they may (I8), and wait for the disk
// when they commit. The server ends them soon after this process can no longer be reached, so that an open transaction does
// not hold up its successor. Sessions have the name in pg_stat_activity, unless the URL gives them an application_name. No
// connection is made yet.
func NewPool(ctx context.Context, url, name string) (*pgxpool.Pool, error) {
	return newPool(ctx, url, 1, func(ctx context.Context, conn *pgx.Conn) error {
		if err := setSession(ctx, conn, name); err != nil {
			return err
		}
		_, err := migrations.BecomeWriter(ctx, conn)
		return err
	})
}

// NewCounterPool makes connections as NewPool does, which work as the role kuberewind_counter and read: one that may not become that role fails. There may be
// two at least.
func NewCounterPool(ctx context.Context, url, name string) (*pgxpool.Pool, error) {
	return newPool(ctx, url, 2, func(ctx context.Context, conn *pgx.Conn) error {
		if err := setSession(ctx, conn, name); err != nil {
			return err
		}
		// The planner is to know the bounds of each question, and opens few partitions then.
		if _, err := conn.Exec(ctx, `SET plan_cache_mode = force_custom_plan; SET jit = off`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("settings of the session: %w", err)
		}
		able, err := migrations.BecomeCounter(ctx, conn)
		if err == nil && !able {
			err = fmt.Errorf("this login may not become %s: run \"recorder migrate\" as the owner of the record, and the SQL that it prints", migrations.CounterRole)
		}
		return err
	})
}

// newPool makes a pool of so many connections at least, whose sessions begin in one way.
func newPool(ctx context.Context, url string, least int32, begin func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	config, err := pgdial.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the database's URL: %w", err)
	}
	pgdial.EndSilence(config.ConnConfig)
	// A connection in the making stays in the pool's count even after its caller has given up, and the pool may have few.
	// Without a timeout, one that is never answered would take its place for ever.
	patience := config.ConnConfig.ConnectTimeout
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
		defer cancel()
		return begin(ctx, conn)
	}
	config.MaxConns = max(config.MaxConns, least)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("the database's connections: %w", err)
	}
	return pool, nil
}

// sessionSettings are set by a statement and not in the startup message, which poolers may refuse. An operator's choice to
// wait for replicas is kept. A choice not to wait for the disk is overridden, because a position must not be ahead of what
// survives (I1).
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
		return fmt.Errorf("settings of the session: %w", err)
	}
	return nil
}
