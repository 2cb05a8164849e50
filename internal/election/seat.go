package election

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// seat is a session of the database that holds the lock of a cluster's leader, or asks for it.
type seat struct {
	connect func(context.Context) (*pgx.Conn, error)
	keys    keys
	name    string // as the session is called
	term    time.Duration
	conn    *pgx.Conn // nil while there is none
	held    bool
}

// keys are the advisory locks of a cluster: the leader's, and one that all its candidates share, so that they can be counted.
type keys struct{ leader, candidates int64 }

// keysOf are 64 bits of a hash: those of two clusters, or of a cluster and something else in the database, are not alike.
func keysOf(cluster string) keys {
	sum := sha256.Sum256([]byte("kuberewind leader of " + cluster))
	leader := int64(binary.BigEndian.Uint64(sum[:8])) &^ 1
	return keys{leader: leader, candidates: leader | 1}
}

// namePrefix begins the name of each session that takes part in an election. PostgreSQL cuts names after 63 bytes.
const namePrefix = "kuberewind "

func newSeat(o Options) *seat {
	return &seat{connect: o.Connect, keys: keysOf(o.Cluster), name: namePrefix + o.Identity, term: o.Term}
}

// sit says something, so that the session lives on, and takes the lock where it may. A session that failed is left: the next call
// begins another.
func (s *seat) sit(ctx context.Context, may bool) (held bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.term, fmt.Errorf("the database did not answer within %s", s.term))
	defer cancel()
	if s.held && !may {
		s.leave()
	}
	if s.conn == nil {
		if err := s.join(ctx); err != nil {
			return false, err
		}
	}
	err = s.conn.QueryRow(ctx, `SELECT CASE WHEN $2::boolean THEN pg_try_advisory_xact_lock($1::bigint) ELSE false END`, simply, s.keys.leader, may).Scan(&held)
	if err != nil {
		s.leave()
		return false, fmt.Errorf("ask the database for the seat of the leader: %w", err)
	}
	s.held = held
	return held, nil
}

// simply sends a statement by the simple protocol: by the other, what it has read stays open, with its snapshot, until the next one.
const simply = pgx.QueryExecModeSimpleProtocol

// join begins the session. At READ COMMITTED a transaction has no snapshot between two statements, whatever the database's default is.
func (s *seat) join(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.conn = conn
	if _, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY`, simply); err == nil {
		// An operator's transaction_timeout, which PostgreSQL has from 17 on, would end a leader's session.
		_, err = conn.Exec(ctx, `
			SELECT set_config('application_name', $1, true), set_config('idle_in_transaction_session_timeout', $2, true),
				(SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'),
				pg_try_advisory_xact_lock_shared($3::bigint)`,
			simply, s.name, fmt.Sprint(s.term.Milliseconds()), s.keys.candidates)
	}
	if err != nil {
		s.leave()
		return fmt.Errorf("join the election in the database: %w", err)
	}
	return nil
}

// leaveTimeout bounds the goodbye to a database that does not answer.
const leaveTimeout = time.Second

// leave ends the session, and with it the lock.
func (s *seat) leave() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = s.conn.Close(ctx) // a server that has not heard it ends the session after the term
	s.conn, s.held = nil, false
}

// holder is who has the seat, as far as the database tells: empty where nobody has it.
func (s *seat) holder(ctx context.Context) string {
	// Otherwise a transaction sees who was there when it first asked.
	if _, err := s.conn.Exec(ctx, `SELECT pg_stat_clear_snapshot()`, simply); err != nil {
		return ""
	}
	names, err := sessions(ctx, s.conn, s.keys.leader)
	if err != nil || len(names) == 0 {
		return ""
	}
	return names[0]
}

// Reader is what reading needs of a connection or pool.
type Reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Standbys are the recorders that wait for the seat of a cluster, as the database tells.
func Standbys(ctx context.Context, db Reader, cluster string) ([]string, error) {
	k := keysOf(cluster)
	names, err := sessions(ctx, db, k.candidates, k.leader)
	if err != nil {
		return nil, fmt.Errorf("read who stands by: %w", err)
	}
	return names, nil
}

// sessions are the names of those that hold a lock and none of the others, sorted.
func sessions(ctx context.Context, db Reader, key int64, but ...int64) ([]string, error) {
	rows, err := db.Query(ctx, `
		WITH held AS (
			SELECT pid, (classid::bigint << 32) | objid::bigint AS key FROM pg_locks
			WHERE locktype = 'advisory' AND objsubid = 1 AND granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
		SELECT coalesce(nullif(a.application_name, ''), 'process ' || h.pid)
		FROM held h LEFT JOIN pg_stat_activity a USING (pid)
		WHERE h.key = $1 AND NOT EXISTS (SELECT FROM held o WHERE o.pid = h.pid AND o.key = ANY ($2))
		ORDER BY 1`, simply, key, but)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (name string, err error) {
		err = row.Scan(&name)
		return strings.TrimPrefix(name, namePrefix), err
	})
}
