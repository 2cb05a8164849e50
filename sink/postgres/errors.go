package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/migrations"
)

// ErrFenced says that another writer holds the cluster: this one can write no more.
var ErrFenced = errors.New("another recorder has taken over this cluster")

// ErrSetBack says that the head of the record is not where this writer left it, though no other writer has moved it. The
// database has lost commits. The next writer goes on from what there is.
var ErrSetBack = errors.New("the record is not where this recorder left it: the database has lost commits, in a failover or a restore (restart the recorder: it goes on from the record)")

// A Class says what can be done about an error of the database.
type Class string

const (
	// Fenced is ErrFenced or ErrSetBack: the process has to end.
	Fenced Class = "fenced"
	// Permanent is what another try does not change: no schema, no right, wrong password.
	Permanent Class = "permanent"
	// Rejected is a value that the database does not take. Another try does not change it; other values are not concerned.
	Rejected Class = "rejected"
	// Connection is a server that is away, or a connection that was lost.
	Connection Class = "connection"
	// Shutdown is a server that is stopping or starting, or that ended the session or the statement.
	Shutdown Class = "shutdown"
	// Resources is a full disk, no memory, or too many connections.
	Resources Class = "resources"
	// ReadOnly is a server that does not take writes: a replica, or a failover on its way.
	ReadOnly Class = "read_only"
	// Conflict is a lock that was not to be had, a deadlock, or a serialization failure.
	Conflict Class = "conflict"
	// NoPartition is a day whose partition is missing: it is made, and the try repeated at once.
	NoPartition Class = "no_partition"
	// Server is an error inside the server or its disk.
	Server Class = "server"
	// Cancelled is a context that ended.
	Cancelled Class = "cancelled"
)

// Transient reports whether the same try may succeed later.
func (c Class) Transient() bool {
	switch c {
	case Connection, Shutdown, Resources, ReadOnly, Conflict, NoPartition, Server:
		return true
	default:
		return false
	}
}

// ClassOf classes an error of this package.
func ClassOf(err error) Class {
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, ErrFenced), errors.Is(err, ErrSetBack):
		return Fenced
	case errors.Is(err, errLate):
		return Connection
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Cancelled
	case errors.As(err, &pgErr):
		if pgErr.Code == pgerrcode.ObjectNotInPrerequisiteState && errors.As(err, new(*pgconn.ConnectError)) {
			return Connection // the database takes no connections for now
		}
		return classOfCode(pgErr)
	case isOwn(err):
		return Permanent
	}
	return Connection
}

// isOwn reports errors that come neither from the server nor from the way to it.
func isOwn(err error) bool {
	for _, own := range []error{
		ErrKeyMismatch, ErrNameTaken, errOutOfOrder, errDocument,
		migrations.ErrMissing, migrations.ErrUnreleased, migrations.ErrOlder, migrations.ErrNewer,
	} {
		if errors.Is(err, own) {
			return true
		}
	}
	var parse *pgconn.ParseConfigError
	return errors.As(err, &parse)
}

// transactionTimeout is what PostgreSQL 17 and newer say when an operator's transaction_timeout ends a session.
const transactionTimeout = "25P04"

func classOfCode(err *pgconn.PgError) Class {
	switch err.Code {
	case pgerrcode.ReadOnlySQLTransaction:
		return ReadOnly
	case pgerrcode.LockNotAvailable, pgerrcode.SerializationFailure, pgerrcode.DeadlockDetected:
		return Conflict
	case pgerrcode.CheckViolation:
		// A violated CHECK has a name; a row without a partition has not.
		if err.ConstraintName == "" {
			return NoPartition
		}
	case pgerrcode.IdleInTransactionSessionTimeout, transactionTimeout:
		return Shutdown
	case pgerrcode.FeatureNotSupported:
		// A plan that was prepared before the schema changed; it is prepared anew the next time.
		if strings.Contains(err.Routine, "RevalidateCachedQuery") {
			return Server
		}
	}
	switch err.Code[:2] {
	case "08":
		return Connection
	case "53":
		return Resources
	case "57":
		return Shutdown
	case "22", "23", "54":
		return Rejected
	case "58", "XX":
		return Server
	}
	return Permanent
}

func isCode(err error, code string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == code
}

// explain adds to an error of the server what the user can do about it.
func explain(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return err
	}
	switch pgErr.Code {
	case pgerrcode.InvalidSchemaName, pgerrcode.UndefinedTable, pgerrcode.UndefinedColumn, pgerrcode.UndefinedFunction:
		return fmt.Errorf("%w (the schema is not the one that this program knows: run \"recorder migrate\", or a newer program if the schema is newer)", err)
	case pgerrcode.InsufficientPrivilege:
		return fmt.Errorf("%w (the role needs to be a member of %s: run \"recorder migrate\")", err, migrations.WriterRole)
	case pgerrcode.LockNotAvailable:
		return fmt.Errorf("%w (another recorder's transaction, an erasure or a migration holds the head of the record: is one still running?)", err)
	case pgerrcode.InvalidSQLStatementName, pgerrcode.DuplicatePreparedStatement:
		return fmt.Errorf("%w (a pooler in transaction mode: add default_query_exec_mode=exec to the URL)", err)
	}
	if pgErr.Where != "" {
		return fmt.Errorf("%w (%s)", err, pgErr.Where)
	}
	return err
}
