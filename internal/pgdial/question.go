package pgdial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// asking returns why a silent server is not worth waiting for, or nil if it is.
type asking func(context.Context) error

// A question asks the server about a session, on another connection to the same address.
type question struct {
	config             *pgx.ConnConfig // of the other connection
	session, questions string          // the marks of the session and of the other connection
}

const (
	// markSize is the length of a mark, whose 80 bits make it unique.
	markSize = 16
	// nameSize is how much of an application_name PostgreSQL keeps.
	nameSize = 63
)

// mark gives the session of a connection a unique name, and returns the unique part. That part is at the end, after
// plain ASCII only, because PostgreSQL escapes other characters and cuts long names.
func mark(config *pgx.ConnConfig) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, config.RuntimeParams["application_name"])
	if name == "" {
		name = "kuberewind"
	}
	mark := rand.Text()[:markSize]
	config.RuntimeParams["application_name"] = name[:min(len(name), nameSize-1-markSize)] + " " + mark
	return mark
}

// Rename returns an SQL expression for a session's application_name. The name begins with the parameter of that number,
// and AskInSilence still finds it.
func Rename(parameter int) string {
	return fmt.Sprintf("$%d::text || ' ' || right(current_setting('application_name'), %d)", parameter, markSize)
}

// newQuestion returns a question to that address only. If a URL names several hosts, the other hosts do not know the
// session.
func newQuestion(config *pgx.ConnConfig, address net.Addr, session string) *question {
	q := &question{config: config.Copy(), session: session}
	q.questions = mark(q.config)
	q.config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	q.config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, address.Network(), address.String())
	}
	q.config.ConnectTimeout = answerPatience
	return q
}

// answerPatience is how long a question waits for its answer. It is longer than connectPatience because hours of work
// may depend on it.
const answerPatience = time.Minute

var (
	errGone       = errors.New("and the session is gone: its work is rolled back unless it had just committed; begin again")
	errAnswered   = errors.New("and its session is idle: the answer was lost on the way; begin again")
	errUnanswered = errors.New("and does not answer another connection")
)

// ask returns nil if the session is at work, or if that cannot be known. It cannot be known if the server refuses the
// connection, or if a proxy changes the names of sessions.
func (q *question) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	named, there, idle, err := q.look(ctx)
	switch {
	case errors.As(err, new(*pgconn.PgError)):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errUnanswered, err)
	case !named:
		return nil
	case there == 0:
		return errGone
	case idle == there:
		return errAnswered
	}
	return nil
}

// look counts the sessions with the mark: a statement may have several processes.
func (q *question) look(ctx context.Context) (named bool, there, idle int, err error) {
	conn, err := pgx.ConnectConfig(ctx, q.config)
	if err != nil {
		return false, 0, 0, err
	}
	err = conn.QueryRow(ctx, `
		SELECT strpos(current_setting('application_name'), $1) > 0, count(*), count(*) FILTER (WHERE state LIKE 'idle%')
		FROM pg_stat_activity WHERE strpos(application_name, $2) > 0`,
		pgx.QueryExecModeSimpleProtocol, q.questions, q.session).Scan(&named, &there, &idle)
	_ = conn.Close(ctx) // no data is pending
	return named, there, idle, err
}
