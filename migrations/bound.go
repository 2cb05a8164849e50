package migrations

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
)

// A boundConnector makes connections whose every statement obeys one context, because golang-migrate runs its own
// statements under the background context. When the context ends, the connector requests that the server cancels the
// statement. If it only closed the connection, the server would continue to wait for its lock, and would later finish
// the migration unseen.
type boundConnector struct {
	driver.Connector
	ctx context.Context // of the call of Up or Down that owns it

	mu    sync.Mutex // protects conns
	conns []*boundConn
}

func newBoundConnector(ctx context.Context, config *pgx.ConnConfig) *boundConnector {
	config = config.Copy()
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: closeTimeout}
	}
	return &boundConnector{Connector: stdlib.GetConnector(*config, stdlib.OptionAfterConnect(setSession)), ctx: ctx}
}

// setSession sets what a migration relies on, whatever the defaults of the role and the database are.
func setSession(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, fmt.Sprintf(`SET lock_timeout = %d; SET statement_timeout = 0; SET search_path = pg_catalog`, lockTimeout.Milliseconds()))
	return err
}

// Connect implements driver.Connector.
func (c *boundConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(c.ctx)
	if err != nil {
		return nil, err
	}
	bound := &boundConn{Conn: conn.(*stdlib.Conn), ctx: c.ctx}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, bound)
	return bound, nil
}

// close closes all connections that were made. Closing one twice does no harm.
func (c *boundConnector) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close() // no data is pending
	}
}

type boundConn struct {
	*stdlib.Conn
	ctx context.Context
}

// ExecContext implements driver.ExecerContext.
func (c *boundConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(c.ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *boundConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(c.ctx, query, args)
}

// BeginTx implements driver.ConnBeginTx.
func (c *boundConn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.BeginTx(c.ctx, opts)
}

// Ping implements driver.Pinger.
func (c *boundConn) Ping(context.Context) error {
	return c.Conn.Ping(c.ctx)
}
