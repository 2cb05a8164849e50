// Package pgdial opens connections to PostgreSQL that do not wait for ever.
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
	// connectPatience is how long the server may take for a new connection, if the URL has no connect_timeout.
	connectPatience = 10 * time.Second
	// silence is how long a server may take to answer a statement. After about the same time TCP finds that a peer is
	// gone, but not behind a proxy or load balancer that swallows the packets.
	silence = time.Minute
)

// ParseConfig reads a PostgreSQL URL or key=value string, which may have pgxpool's parameters. It sets a timeout for
// new connections.
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

// EndSilence makes a statement fail if the server sends no answer, or no further part of it, for a minute. It is for
// statements that take less than that, whatever locks they wait for.
func EndSilence(config *pgx.ConnConfig) { endSilence(config, silence, nil) }

// AskInSilence is EndSilence for statements that may take as long as they need, on one connection. After each minute
// without an answer, it asks the server about the session, on another connection.
//
// The statement fails if two questions in a row find no answering server, or no session that works on the statement.
// The question finds the session by its application_name: the user's name, if any, with a mark at the end. A session
// that changes its name in another way than by Rename counts as gone.
func AskInSilence(config *pgx.ConnConfig) { askInSilence(config, silence) }

func askInSilence(config *pgx.ConnConfig, silence time.Duration) {
	another := config.Copy()
	session := mark(config)
	endSilence(config, silence, func(context.Context) error { return nil }) // until the connection is open, ConnectTimeout bounds the wait
	connected := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if connected != nil {
			if err := connected(ctx, conn); err != nil {
				return err
			}
		}
		p := conn.Conn().(*patient)
		p.setAsk(newQuestion(another, p.RemoteAddr(), session).ask)
		return nil
	}
}

func endSilence(config *pgx.ConnConfig, silence time.Duration, ask asking) {
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		return &patient{Conn: conn, silence: silence, ask: ask}, nil
	}
}

// A patient connection ends its reads if no data comes for too long. It also obeys a deadline that pgx sets.
type patient struct {
	net.Conn
	silence time.Duration

	mu        sync.Mutex // protects the fields below, and their order with the deadlines of reads
	ask       asking     // nil if a read fails without a question
	deadline  time.Time  // zero for none
	cancelAsk func()     // cancels the question that is being asked, nil for none
}

// tries is how many questions in a row must find no answer, because one may fail for another reason.
const tries = 2

// Read implements net.Conn.
func (p *patient) Read(b []byte) (int, error) {
	for failed := 0; ; {
		n, silent, err := p.read(b)
		if !silent {
			return n, err
		}
		err = fmt.Errorf("the database has not answered for %s: %w", p.silence, err)
		ask := p.asking()
		if ask == nil {
			return n, err
		}
		reason := p.question(ask)
		if failed++; reason == nil {
			failed = 0
		}
		if failed == tries {
			return n, fmt.Errorf("%w, %w", err, reason)
		}
	}
}

// setAsk sets the question. On a busy machine, pgx already reads the new connection in the background.
func (p *patient) setAsk(ask asking) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ask = ask
}

func (p *patient) asking() asking {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ask
}

// question asks until the deadline of the read, if there is one. Then the read itself ends.
func (p *patient) question(ask asking) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.mu.Lock()
	if !p.deadline.IsZero() {
		var early context.CancelFunc
		ctx, early = context.WithDeadline(ctx, p.deadline)
		defer early()
	}
	p.cancelAsk = cancel
	p.mu.Unlock()
	err := ask(ctx)
	p.mu.Lock()
	p.cancelAsk = nil
	p.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	return err
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

// SetReadDeadline implements net.Conn. It can end a waiting read and its question early, but cannot extend the wait.
func (p *patient) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	if t.IsZero() {
		return nil
	}
	if p.cancelAsk != nil {
		p.cancelAsk()
	}
	return p.Conn.SetReadDeadline(t)
}
