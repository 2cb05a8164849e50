package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/internal/chain"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Conn is a connection whose login owns the tables.
type Conn interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Options set the value to erase, where to erase it, and why.
type Options struct {
	// Cluster is the number of the cluster.
	Cluster int32
	// Value is the value to erase, also as a part of longer texts.
	Value []byte
	// Keyed makes fingerprints, with a key that is not in the database.
	Keyed func(text []byte) []byte
	// In limits the erasure to resource[.group][/namespace[/name]]. Without a group it means every group; a trailing dot means the core group.
	// The namespace of cluster-scoped objects is empty. If In is empty, the erasure covers all objects and the recorded documents of the
	// server.
	In string
	// Paths limit the erasure to places in the objects, in the form of patch.ParsePath. None means everywhere.
	Paths []string
	// Reason is recorded.
	Reason string
	// Recorder and Version name the program, as in epochs.
	Recorder, Version string
	// DryRun reports the changes and makes none.
	DryRun bool
}

// Object is a life that held the value.
type Object struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Deltas    int64  `json:"deltas"`
	// Holds is true if the object lives and its newest version on record held the value. The object in the cluster still has the value then,
	// and its next version would record it again.
	Holds bool `json:"holds"`
	// Paths are the places in that version that held the value.
	Paths []string `json:"paths,omitempty"`
}

// Report is the result of an erasure.
type Report struct {
	DryRun bool `json:"dryRun"`
	// Erasure is the number of the erasure. It is 0 if there was nothing to erase, and with DryRun.
	Erasure int64    `json:"erasure,omitempty"`
	Deltas  int64    `json:"deltas"`
	Objects []Object `json:"objects"`
	// Documents counts the documents of the server that held the value. It also counts lives whose owners held it and whose first version was
	// dropped.
	Documents   int64 `json:"documents"`
	Checkpoints int64 `json:"checkpoints"`
	// Days are the days whose partitions hold changed rows.
	Days []string `json:"days"`
	// Named counts objects whose name or namespace holds the value. Mentions counts all other texts that hold it: gaps, streams,
	// configurations, names of managers, and reasons of prunes and erasures. All of these stay.
	Named    int64 `json:"named"`
	Mentions int64 `json:"told"`
}

var (
	// ErrNotOwner says that the login may not change the record.
	ErrNotOwner = errors.New("only the owner of the record may erase from it")
	// ErrScope says that In or Paths cannot be parsed.
	ErrScope = errors.New("no such place")
)

// Erase removes the value from the record. While it scans for the value, recorders go on. While it changes rows, no recorder can commit.
func Erase(ctx context.Context, conn Conn, o Options) (Report, error) {
	e, err := newErasing(conn, o)
	if err == nil {
		err = e.run(ctx)
	}
	if err != nil {
		return Report{}, fmt.Errorf("erase from the record: %w", err)
	}
	return e.report, nil
}

type erasing struct {
	conn    Conn
	options Options
	value   *value
	scope   scope
	report  Report

	objects map[int64]bool // object_id of lives whose rows may hold the value
	scanned int64          // seq up to which the rows were scanned
	managed int64          // deltas whose manager, hint or subresource holds the value
	first   int64          // lowest seq that was changed
	days    map[string]bool
}

// scope selects objects. A nil field selects any.
type scope struct{ resource, group, namespace, name *string }

func newErasing(conn Conn, o Options) (*erasing, error) {
	var paths []patch.Path
	for _, text := range o.Paths {
		path, err := patch.ParsePath(text)
		if err != nil || text == "" {
			return nil, fmt.Errorf("%w: %q is not a path such as /spec/containers/*/env", ErrScope, text)
		}
		paths = append(paths, path)
	}
	v, err := newValue(o.Value, o.Keyed, paths)
	if err != nil {
		return nil, err
	}
	e := &erasing{conn: conn, options: o, value: v, objects: map[int64]bool{}, days: map[string]bool{}, report: Report{DryRun: o.DryRun, Objects: []Object{}, Days: []string{}}}
	if e.scope, err = parseScope(o.In); err != nil {
		return nil, err
	}
	return e, e.checkTexts()
}

// checkTexts refuses options that hold the value, because the erasure records their texts.
func (e *erasing) checkTexts() error {
	if e.value.in(e.options.Reason) {
		return fmt.Errorf("%w: it is part of the reason, which is recorded", ErrValue)
	}
	for _, place := range append([]string{e.options.In}, e.options.Paths...) {
		if e.value.in(place) || e.value.in(pointerPlain.Replace(place)) {
			return fmt.Errorf("%w: it is part of the place to erase in, which is recorded: omit the place, or name a higher one", ErrValue)
		}
	}
	return nil
}

func parseScope(in string) (s scope, err error) {
	if in == "" {
		return s, nil
	}
	parts := strings.SplitN(in, "/", 3)
	resource, group, hasGroup := strings.Cut(parts[0], ".")
	if resource == "" {
		return s, fmt.Errorf("%w: %q is not resource[.group][/namespace[/name]]", ErrScope, in)
	}
	s.resource = &resource
	if hasGroup {
		s.group = &group
	}
	if len(parts) > 1 {
		s.namespace = &parts[1]
	}
	if len(parts) > 2 {
		s.name = &parts[2]
	}
	return s, nil
}

// everything reports whether the erasure covers the whole record.
func (e *erasing) everything() bool { return e.options.In == "" && len(e.options.Paths) == 0 }

func (e *erasing) run(ctx context.Context) error {
	if err := e.owner(ctx); err != nil {
		return err
	}
	// Rows on record do not change. So the long scan can run before the transaction, and blocks no recorder.
	if err := e.scan(ctx, e.conn); err != nil {
		return err
	}
	if e.options.DryRun {
		return e.dry(ctx)
	}
	tx, err := e.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // without effect once committed
	if err := e.change(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func (e *erasing) owner(ctx context.Context) error {
	var owns bool
	var login, owner string
	err := e.conn.QueryRow(ctx, `
		SELECT pg_has_role(current_user, relowner, 'USAGE'), current_user, pg_get_userbyid(relowner)
		FROM pg_catalog.pg_class WHERE oid = 'kuberewind.deltas_data'::regclass`).Scan(&owns, &login, &owner)
	if err == nil && !owns {
		return fmt.Errorf("%w: that is %s, and the login is %s", ErrNotOwner, owner, login)
	}
	return err
}

// dry fills the report and changes nothing.
func (e *erasing) dry(ctx context.Context) error {
	e.value.marker = markerOf(0)
	if err := e.lives(ctx, e.conn, func(context.Context, *rewritten) error { return nil }); err != nil {
		return err
	}
	if err := e.checkpoints(ctx, e.conn); err != nil {
		return err
	}
	if err := e.disown(ctx, e.conn); err != nil {
		return err
	}
	return e.documents(ctx, e.conn)
}

func (e *erasing) change(ctx context.Context, tx pgx.Tx) error {
	// A checkpoint maker holds this lock in a weaker mode, and reads the record as of its start. It must end first, and no other may start. A
	// writer of counts takes the lock, too, and then checks for a new erasure. The lock blocks no reader. While it waits, it blocks no
	// recorder.
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;
		LOCK TABLE kuberewind.checkpoints, kuberewind.activity IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return err
	}
	head, err := postgres.BeginErasure(ctx, tx, e.options.Cluster)
	if err != nil {
		return err
	}
	// Scan the rows that recorders wrote since the first scan.
	if err := e.scan(ctx, tx); err != nil {
		return err
	}
	e.value.marker = markerOf(head.Number)
	err = e.lives(ctx, tx, func(ctx context.Context, w *rewritten) error {
		if err := head.ReplaceDelta(ctx, w.observed, w.ErasedDelta, w.patch, w.object, w.exact); err != nil || !w.first {
			return err
		}
		return head.ReplaceOwners(ctx, w.Seq, w.owners)
	})
	if err != nil {
		return err
	}
	if err := e.disown(ctx, tx); err != nil {
		return err
	}
	if err := e.checkpoints(ctx, tx); err != nil {
		return err
	}
	if err := e.counts(ctx, tx); err != nil {
		return err
	}
	if err := e.documents(ctx, tx); err != nil {
		return err
	}
	if e.report.Deltas+e.report.Documents == 0 {
		return nil
	}
	e.report.Erasure = head.Number
	x := chain.Erasure{
		Reason: e.options.Reason, Scope: strings.TrimSpace(e.options.In + " " + strings.Join(e.options.Paths, " ")), Fingerprint: e.value.keyed(e.options.Value),
		Deltas: e.report.Deltas, Objects: int64(len(e.report.Objects)), Documents: e.report.Documents,
	}
	if err := tx.QueryRow(ctx, `SELECT clock_timestamp(), session_user`).Scan(&x.At, &x.By); err != nil {
		return err
	}
	return head.End(ctx, x, e.options.Recorder, e.options.Version)
}

// disown removes the owners of lives whose first version was dropped, if they hold the value. No query reads these owners. The report counts
// them as documents.
func (e *erasing) disown(ctx context.Context, db querier) error {
	if !e.everything() {
		return nil
	}
	statement := `UPDATE kuberewind.lives SET owners = NULL`
	if e.options.DryRun {
		statement = `SELECT FROM kuberewind.lives`
	}
	found, err := db.Exec(ctx, statement+`
		WHERE cluster = $1 AND object_id < (SELECT min(first_seq) FROM kuberewind.days WHERE cluster = $1)
			AND EXISTS (SELECT FROM unnest(owners) AS owner, unnest($2::text[]) AS form WHERE strpos(owner, form) > 0)`, e.options.Cluster, textsOf(e.value.forms))
	e.report.Documents += found.RowsAffected()
	return err
}

// lives erases from all lives that may hold the value, in order.
func (e *erasing) lives(ctx context.Context, db querier, change func(context.Context, *rewritten) error) error {
	ids := make([]int64, 0, len(e.objects))
	for id := range e.objects {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := e.life(ctx, db, id, change); err != nil {
			return err
		}
	}
	for day := range e.days {
		e.report.Days = append(e.report.Days, day)
	}
	slices.Sort(e.report.Days)
	return nil
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// dayOf returns the UTC day whose partition holds a delta.
func dayOf(observed time.Time) string { return observed.UTC().Format(time.DateOnly) }
