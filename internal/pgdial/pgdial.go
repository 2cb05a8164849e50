// Package pgdial says how the programs connect to PostgreSQL: with an end to their patience.
package pgdial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectPatience is how long the server may take for a new connection, where the URL has no connect_timeout.
	connectPatience = 10 * time.Second
	// silence is how long a server may say nothing to a statement. TCP finds out in about the same time that nobody is there any more, but not
	// behind a proxy or a load balancer that swallows what is sent.
	silence = time.Minute
)

// ParseConfig reads a PostgreSQL URL or key=value string, pgxpool's parameters included. A connection by it that is not made in time is given up.
func ParseConfig(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectPatience
	}
	return config, nil
}

// EndSilence has a connection by the configuration fail when a statement gets no answer for a minute, or no more of it. It is for statements that
// take less, whatever locks they wait for.
func EndSilence(config *pgx.ConnConfig) { endSilence(config, silence, nil) }

// AskInSilence is EndSilence for statements that may take as long as they need: after each minute without an answer the server is asked on another
// connection, and if it gives none there either, the statement's fails.
func AskInSilence(config *pgx.ConnConfig) { askInSilence(config, silence) }

func askInSilence(config *pgx.ConnConfig, silence time.Duration) {
	another := config.Copy()
	endSilence(config, silence, func() error { return answers(another) })
}

func endSilence(config *pgx.ConnConfig, silence time.Duration, ask func() error) {
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		return &patient{Conn: conn, silence: silence, ask: ask}, nil
	}
}

// answers asks a server for any word. That it refuses is one.
func answers(config *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(context.Background(), config.ConnectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		err = conn.Ping(ctx) // a pooler may have connected
		_ = conn.Close(ctx)  // nothing was left to be written
	}
	if errors.As(err, new(*pgconn.PgError)) {
		return nil
	}
	return err
}

// patient is a connection whose reads end when nothing comes for too long. A deadline that is set to it counts as well.
type patient struct {
	net.Conn
	silence time.Duration
	ask     func() error // nil, or says why what was silent is not to be waited for any longer

	mu       sync.Mutex // protects what follows, and its order with the reads' deadlines
	deadline time.Time  // zero for none
}

// Read implements net.Conn.
func (p *patient) Read(b []byte) (int, error) {
	for {
		n, silent, err := p.read(b)
		if !silent {
			return n, err
		}
		err = fmt.Errorf("the database has not answered for %s: %w", p.silence, err)
		if p.ask == nil {
			return n, err
		}
		if reason := p.ask(); reason != nil {
			return n, fmt.Errorf("%w, and does not answer another connection: %w", err, reason)
		}
	}
}

// read waits until the silence has lasted for too long.
func (p *patient) read(b []byte) (n int, silent bool, err error) {
	p.mu.Lock()
	until, own := time.Now().Add(p.silence), true
	if !p.deadline.IsZero() && p.deadline.Before(until) {
		until, own = p.deadline, false
	}
	err = p.Conn.SetReadDeadline(until)
	p.mu.Unlock()
	if err != nil {
		return 0, false, err
	}
	n, err = p.Conn.Read(b)
	return n, own && errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(until), err
}

// SetDeadline implements net.Conn.
func (p *patient) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn. A read that is waiting is cut short; one that is given more time waits no longer than it would have.
func (p *patient) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	if t.IsZero() {
		return nil
	}
	return p.Conn.SetReadDeadline(t)
}
