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

// asking finds out why what was silent is not to be waited for any longer, nil if it is.
type asking func(context.Context) error

// A question is what has become of a session, asked on another connection to the same address.
type question struct {
	config             *pgx.ConnConfig // of that connection
	session, questions string          // the marks of the two
}

const (
	// markSize is the length of a mark: of 80 bits, so that no two are the same.
	markSize = 16
	// nameSize is what PostgreSQL keeps of an application_name.
	nameSize = 63
)

// mark gives the session of a connection a name of its own, and returns what of it no other has. It is at the end, and plain ASCII comes before it: PostgreSQL
// writes other characters out, and cuts what gets too long.
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

// Rename is an SQL expression for a session's application_name that begins with the parameter of that number, and is still found by AskInSilence.
func Rename(parameter int) string {
	return fmt.Sprintf("$%d::text || ' ' || right(current_setting('application_name'), %d)", parameter, markSize)
}

// newQuestion is asked of who is at an address: of several hosts of a URL, another one does not know the session.
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

// answerPatience is how long a question waits for its answer. It is longer than connectPatience because hours of work may hang on it.
const answerPatience = time.Minute

var (
	errGone       = errors.New("and there is no such session any more: what was under way is rolled back, unless it was at its end; begin again")
	errAnswered   = errors.New("and its session has nothing to do any more: the answer was lost on the way; begin again")
	errUnanswered = errors.New("and does not answer another connection")
)

// ask returns nil where the session is at work, and where that cannot be known: the server refuses the connection, or something between gives
// sessions names of its own.
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
	_ = conn.Close(ctx) // nothing was left to be written
	return named, there, idle, err
}
