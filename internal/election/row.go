package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/migrations"
)

// Connector opens a connection to the database of the record. It calls change on the configuration first.
type Connector func(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error)

// row is the row of kuberewind.leaders that names the leader of a cluster, as this process last read it. One goroutine uses it.
//
// Each call sends one message with all statements of one transaction. So the server ends the transaction even if this process is stopped
// in the middle, and a pooler may run each call on another session.
type row struct {
	connect Connector
	cluster string
	holder  string // the name of this process
	token   string // identifies this process in the row; no other process has the same
	term    time.Duration
	pace    time.Duration

	conn    *pgx.Conn // nil if there is none
	leader  string    // the name of the leader, as last read; empty if there is none
	held    bool      // this process leads, as last read
	expired bool      // the term was over, as last read
}

// These statements use the clock of the database. If that clock was set back by more than a term, the row counts as expired. Without that
// rule, the row would stay held until the clock has caught up.
const (
	expired = `clock_timestamp() NOT BETWEEN renewed_at - term AND renewed_at + term`
	vacant  = `renewed_at = '-infinity'`

	makeVacant = `INSERT INTO kuberewind.leaders (cluster_uid, holder, token, renewed_at, term)
		SELECT $1, '', '', '-infinity', '0' WHERE NOT EXISTS (SELECT FROM kuberewind.leaders WHERE cluster_uid = $1) ON CONFLICT DO NOTHING`
	take = `UPDATE kuberewind.leaders SET holder = $3, token = $2, renewed_at = clock_timestamp(), term = $4::interval
		WHERE cluster_uid = $1 AND (token = $2 OR ` + vacant + ` OR $5::boolean AND ` + expired + `)`
	release = `UPDATE kuberewind.leaders SET renewed_at = '-infinity' WHERE cluster_uid = $1 AND token = $2`
	read    = `SELECT CASE WHEN ` + expired + ` THEN '' ELSE holder END, token = $2 AND NOT ` + expired + `, ` + expired + `
		FROM kuberewind.leaders WHERE cluster_uid = $1`

	standBy = `INSERT INTO kuberewind.standbys (cluster_uid, recorder, seen_at, term) VALUES ($1, $2, clock_timestamp(), $3::interval)
		ON CONFLICT (cluster_uid, recorder) DO UPDATE SET seen_at = excluded.seen_at, term = excluded.term`
	dropStandby  = `DELETE FROM kuberewind.standbys WHERE cluster_uid = $1 AND recorder = $2`
	dropStandbys = `DELETE FROM kuberewind.standbys WHERE cluster_uid = $1 AND seen_at < clock_timestamp() - 10 * term`
)

// look renews or takes the row if may is true. Else it releases the row. Then it reads who leads.
//
// It takes an expired row only if the previous look found it expired, too. So a leader that was delayed together with the database renews
// the row first.
func (r *row) look(ctx context.Context, may bool) error {
	ctx, cancel := r.limit(ctx)
	defer cancel()
	if r.conn == nil {
		if err := r.join(ctx); err != nil {
			return err
		}
	}
	b := r.begin()
	switch {
	case may:
		b.Queue(take, r.cluster, r.token, r.holder, interval(r.term), r.expired)
	case r.held:
		b.Queue(release, r.cluster, r.token)
	}
	b.Queue(read, r.cluster, r.token).QueryRow(func(found pgx.Row) error { return found.Scan(&r.leader, &r.held, &r.expired) })
	if err := r.send(ctx, b); err != nil {
		return fmt.Errorf("look up the leader in the database: %w", err)
	}
	return nil
}

// note writes to kuberewind.standbys that this process stands by. It removes standbys that have not done so for ten of their terms.
func (r *row) note(ctx context.Context) error {
	b := r.begin()
	b.Queue(standBy, r.cluster, r.holder, interval(r.term))
	b.Queue(dropStandbys, r.cluster)
	if err := r.send(ctx, b); err != nil {
		return fmt.Errorf("note the standby in the database: %w", err)
	}
	return nil
}

// join connects, and makes the row if it is missing.
func (r *row) join(ctx context.Context) (err error) {
	if r.conn, err = r.connect(ctx, simply); err != nil {
		return err
	}
	b := r.begin()
	b.Queue(makeVacant, r.cluster)
	if err := r.send(ctx, b); err != nil {
		return fmt.Errorf("join the election in the database: %w", err)
	}
	return nil
}

// SessionName is the application name of an election's session, unless the URL of the database sets another one.
const SessionName = "kuberewind election"

// simply makes pgx send a batch as one message without prepared statements.
func simply(config *pgx.ConnConfig) {
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = SessionName
	}
}

// begin makes a batch with the settings of its transaction.
//
// If another session has locked the row, a statement fails after at most a second. The server cancels a statement after half a term, so
// that it cannot renew the row after this process has given up. If a crash of the server loses a renewal, that does no harm, so the commit
// waits for no disk and no replica.
func (r *row) begin() *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(`SET TRANSACTION ISOLATION LEVEL READ COMMITTED`)
	b.Queue(`SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true), set_config('synchronous_commit', 'off', true)`,
		fmt.Sprint(r.pace.Milliseconds()), fmt.Sprint((r.term / 2).Milliseconds()))
	b.Queue(migrations.AsWriter, migrations.WriterRole)
	return b
}

// send runs a batch as one transaction. After an error the state of the row is unknown, so send drops the connection and the next look
// connects again.
func (r *row) send(ctx context.Context, b *pgx.Batch) error {
	ctx, cancel := r.limit(ctx)
	defer cancel()
	err := r.conn.SendBatch(ctx, b).Close()
	if err != nil {
		r.drop()
	}
	return err
}

func (r *row) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.term, fmt.Errorf("the database did not answer within %s", r.term))
}

// close releases the row and closes the connection.
func (r *row) close() {
	if r.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	b := r.begin()
	b.Queue(release, r.cluster, r.token)
	b.Queue(dropStandby, r.cluster, r.holder)
	if r.send(ctx, b) == nil { // else the row expires
		r.drop()
	}
}

// closeTimeout bounds the last statements, in case the database does not answer.
const closeTimeout = time.Second

func (r *row) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = r.conn.Close(ctx) // there is nothing more to write
	r.conn, r.leader, r.held, r.expired = nil, "", false, false
}

func interval(d time.Duration) string { return fmt.Sprintf("%d milliseconds", d.Milliseconds()) }

// Reader is a connection or pool that can run queries.
type Reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Leader returns the name of the recorder that leads a cluster, or "" if there is none.
func Leader(ctx context.Context, db Reader, cluster string) (string, error) {
	rows, err := db.Query(ctx, `
		SELECT r.recorder FROM kuberewind.recorders r JOIN kuberewind.record_clusters c ON c.name = r.cluster
		WHERE c.uid = $1 AND r.recording`, cluster)
	if err != nil {
		return "", fmt.Errorf("read the leader: %w", err)
	}
	name, err := pgx.CollectOneRow(rows, pgx.RowTo[string])
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the leader: %w", err)
	}
	return name, nil
}

// Standbys returns the names of the recorders that stand by for a cluster. They write these names themselves.
func Standbys(ctx context.Context, db Reader, cluster string) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT recorder FROM kuberewind.record_standbys WHERE cluster_uid = $1 ORDER BY 1`, cluster)
	if err != nil {
		return nil, fmt.Errorf("read the standbys: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the standbys: %w", err)
	}
	return names, nil
}
