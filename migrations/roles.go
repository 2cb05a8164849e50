package migrations

import (
	"context"
	_ "embed" // for the grants
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
)

const (
	// WriterRole is the role of a recorder.
	WriterRole = "kuberewind_writer"
	// AuditorRole is the role that reads the public views.
	AuditorRole = "kuberewind_auditor"
	// PrunerRole is the role that may only drop whole days.
	PrunerRole = "kuberewind_pruner"
	// CounterRole is the role under which a recorder counts for the timeline: it reads the record, and writes the table
	// activity.
	CounterRole = "kuberewind_counter"
)

// allRoles are in the order in which they are made. The order is fixed, so that two migrators cannot wait for each
// other's second role.
var allRoles = []string{WriterRole, AuditorRole, PrunerRole, CounterRole}

//go:embed grants.sql
var grants string

//go:embed grants_pruner.sql
var prunerGrants string

//go:embed grants_counter.sql
var counterGrants string

// optional are the roles that a record can do without. A record that is older than such a role keeps working.
var optional = []struct{ role, grants string }{{PrunerRole, strings.TrimSpace(prunerGrants)}, {CounterRole, strings.TrimSpace(counterGrants)}}

const (
	// rolesAttempts bounds the retries of Roles. Each retry means that a migrator of another database was faster.
	rolesAttempts = 50
	rolesPause    = 50 * time.Millisecond
)

// A Beginner is a connection or pool that begins a transaction for Roles.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Roles makes the missing roles of writer, auditor, pruner and counter. It gives each its rights in this database, and
// revokes all others. A migrating role that owns the schema becomes a member of the writer, so that it can step down to
// it. The writer becomes a member of the counter, so that a recorder's login needs no further grant. Call it after each
// migration.
//
// If the calling role may not run a statement, that is no error: Roles returns the SQL for an administrator to run in
// this database. If the calling role does not own the schema, Roles changes no rights. Without a schema, the error is
// ErrMissing.
func Roles(ctx context.Context, db Beginner) (missing string, err error) {
	for attempt := 1; ; attempt++ {
		missing, err = roles(ctx, db)
		if err == nil {
			return missing, nil
		}
		if !collided(err) || attempt == rolesAttempts {
			return "", fmt.Errorf("set up the roles of the record: %w", err)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("set up the roles of the record: %w", context.Cause(ctx))
		case <-time.After(rolesPause):
		}
	}
}

// collided reports whether another session changed the same rows of the catalogs, which belong to all databases of the
// server. PostgreSQL has no error code for that: "tuple concurrently updated" is an internal error.
func collided(err error) bool {
	return hasCode(err, pgerrcode.InternalError, pgerrcode.UniqueViolation, pgerrcode.DuplicateObject, pgerrcode.DeadlockDetected)
}

// standing is the connected role, and what it may do.
type standing struct {
	user, database string
	absent         []string // roles
	mayCreate      bool     // roles
	owner          bool     // of the schema, or superuser
}

func roles(ctx context.Context, db Beginner) (missing string, err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing
	who, err := standingOf(ctx, tx)
	if err != nil {
		return "", err
	}
	sql, ready, err := who.create(ctx, tx)
	if err != nil {
		return "", err
	}
	if len(sql) == 0 {
		who.absent = nil
	}
	switch {
	case !ready:
		sql = append(sql, who.membership()...)
		sql = append(sql, counting, strings.TrimSpace(grants))
		for _, l := range optional {
			sql = append(sql, l.grants)
		}
	case who.owner:
		granted, err := who.grant(ctx, tx)
		if err != nil {
			return "", err
		}
		sql = append(sql, granted...)
	}
	if err := tx.Commit(ctx); err != nil || len(sql) == 0 {
		return "", err
	}
	head := fmt.Sprintf("-- To be run by a superuser in the database %s:\n", pgx.Identifier{who.database}.Sanitize())
	return head + strings.Join(sql, "\n") + "\n", nil
}

func standingOf(ctx context.Context, tx pgx.Tx) (who standing, err error) {
	err = tx.QueryRow(ctx, `SELECT current_user, current_database(),
			ARRAY(SELECT role FROM unnest($1::text[]) WITH ORDINALITY AS wanted (role, place) WHERE to_regrole(role) IS NULL ORDER BY place), r.rolsuper OR r.rolcreaterole,
			pg_has_role(n.nspowner, 'USAGE')
		FROM pg_catalog.pg_roles r, pg_catalog.pg_namespace n
		WHERE r.rolname = current_user AND n.nspname = 'kuberewind'`, allRoles).
		Scan(&who.user, &who.database, &who.absent, &who.mayCreate, &who.owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return who, ErrMissing
	}
	return who, err
}

// grant gives the roles their rights. It returns as SQL the statements that it may not run, and those for absent roles.
func (who standing) grant(ctx context.Context, tx pgx.Tx) (missing []string, err error) {
	if missing, err = who.join(ctx, tx); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, grants); err != nil {
		return nil, err
	}
	for _, l := range optional {
		if slices.Contains(who.absent, l.role) {
			missing = append(missing, l.grants)
		} else if _, err := tx.Exec(ctx, l.grants); err != nil {
			return nil, err
		}
	}
	if slices.Contains(who.absent, CounterRole) {
		return append(missing, counting), nil
	}
	more, err := letCount(ctx, tx)
	return append(missing, more...), err
}

// counting makes the writer a member of the counter, so that each login of a recorder can count.
const counting = "GRANT " + CounterRole + " TO " + WriterRole + ";"

// letCount makes that grant, if it is missing. If this role may not, it returns the SQL.
func letCount(ctx context.Context, tx pgx.Tx) (missing []string, err error) {
	var member bool
	if err := tx.QueryRow(ctx, "SELECT pg_has_role($1::name, $2::name, 'MEMBER')", WriterRole, CounterRole).Scan(&member); err != nil || member {
		return nil, err
	}
	return allowed(ctx, tx, counting)
}

// create makes the missing roles. It returns as SQL what it may not run. ready reports whether the writer and the
// auditor exist, without which no record can be written and read. A record that is older than the pruner keeps working.
func (who standing) create(ctx context.Context, tx pgx.Tx) (missing []string, ready bool, err error) {
	for _, role := range who.absent {
		missing = append(missing, "CREATE ROLE "+role+" NOLOGIN;")
	}
	if len(missing) == 0 || !who.mayCreate {
		return missing, !slices.Contains(who.absent, WriterRole) && !slices.Contains(who.absent, AuditorRole), nil
	}
	_, err = tx.Exec(ctx, strings.Join(missing, "\n"))
	return nil, true, err
}

func (who standing) membership() []string {
	if !who.owner {
		return nil
	}
	return []string{fmt.Sprintf("GRANT %s TO %s;", WriterRole, pgx.Identifier{who.user}.Sanitize())}
}

// join makes the owner a member of the writer. If it may not, it returns the SQL.
func (who standing) join(ctx context.Context, tx pgx.Tx) (missing []string, err error) {
	able, err := mayBecome(ctx, tx, WriterRole)
	if err != nil || able {
		return nil, err
	}
	return allowed(ctx, tx, who.membership()[0])
}

// allowed runs SQL. If this role may not run it, allowed returns the SQL.
func allowed(ctx context.Context, tx pgx.Tx, sql string) (missing []string, err error) {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = inner.Exec(ctx, sql); err == nil {
		return nil, inner.Commit(ctx)
	}
	if rollback := inner.Rollback(ctx); rollback != nil {
		return nil, rollback
	}
	if hasCode(err, pgerrcode.InsufficientPrivilege) {
		return []string{sql}, nil
	}
	return nil, err
}

// BecomeWriter makes the session work as kuberewind_writer from now on (I8), and reports whether it does. If there is
// no such role, or the login is not its member, the session stays unchanged. It is meant for a pool's AfterConnect.
func BecomeWriter(ctx context.Context, conn *pgx.Conn) (bool, error) {
	return become(ctx, conn, WriterRole)
}

// BecomeCounter is BecomeWriter for kuberewind_counter.
func BecomeCounter(ctx context.Context, conn *pgx.Conn) (bool, error) {
	return become(ctx, conn, CounterRole)
}

func become(ctx context.Context, conn *pgx.Conn, role string) (bool, error) {
	able, err := mayBecome(ctx, conn, role)
	if err != nil || !able {
		return false, err
	}
	if _, err := conn.Exec(ctx, "SET ROLE "+role); err != nil {
		return false, fmt.Errorf("become %s: %w", role, err)
	}
	return true, nil
}

// mayBecomeIt selects whether the session may become the role $1. Since PostgreSQL 16, a member may lack the right to
// SET ROLE.
const mayBecomeIt = `coalesce(pg_has_role(to_regrole($1)::oid,
	CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END), false)`

// AsWriter is a statement that does the same as BecomeWriter for its transaction only: a pooler may give the session to
// other clients afterwards. Its argument is WriterRole.
const AsWriter = `SELECT set_config('role', $1, true) WHERE ` + mayBecomeIt

func mayBecome(ctx context.Context, db Querier, role string) (able bool, err error) {
	if err = db.QueryRow(ctx, "SELECT "+mayBecomeIt, role).Scan(&able); err != nil {
		return false, fmt.Errorf("check membership in %s: %w", role, err)
	}
	return able, nil
}
