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

// ErrFenced is the error of a writer after another writer has taken over the cluster. The first can write no more.
var ErrFenced = errors.New("another recorder has taken over this cluster")

// ErrSetBack is the error if the head of the record is not where this writer moved it, although no other writer has
// moved it. The database has lost commits. The next writer continues from the record as it is.
var ErrSetBack = errors.New("the database has lost commits of this recorder, in a failover or a restore (restart the recorder: it continues from the record)")

// A Class says what a program can do about an error of the database.
type Class string

const (
	// Fenced is ErrFenced or ErrSetBack: the process must end.
	Fenced Class = "fenced"
	// Permanent is an error that a retry does not change: no schema, no right, a wrong password.
	Permanent Class = "permanent"
	// Rejected is a value that the database does not accept. A retry does not change it; other values are not affected.
	Rejected Class = "rejected"
	// Connection is a server that is away, or a lost connection.
	Connection Class = "connection"
	// Shutdown is a server that is stopping or starting, or that ended the session or the statement.
	Shutdown Class = "shutdown"
	// Resources is a full disk, no memory, or too many connections.
	Resources Class = "resources"
	// ReadOnly is a server that accepts no writes: a replica, or a failover under way.
	ReadOnly Class = "read_only"
	// Conflict is a lock that the server did not grant in time, a deadlock, or a serialization failure.
	Conflict Class = "conflict"
	// NoPartition is a day whose partition is missing. The sink makes it and retries at once.
	NoPartition Class = "no_partition"
	// Server is an error inside the server or its disk.
	Server Class = "server"
	// Cancelled is a context that ended.
	Cancelled Class = "cancelled"
)

// Transient reports whether the same attempt may succeed later.
func (c Class) Transient() bool {
	switch c {
	case Connection, Shutdown, Resources, ReadOnly, Conflict, NoPartition, Server:
		return true
	default:
		return false
	}
}

// ClassOf returns the class of an error of this package.
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
			return Connection // the database accepts no connections at present
		}
		return classOfCode(pgErr)
	case isOwn(err):
		return Permanent
	}
	return Connection
}

// isOwn reports whether an error comes neither from the server nor from the connection to it.
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

// transactionTimeout is the code of PostgreSQL 17 and newer if an operator's transaction_timeout ends a session.
const transactionTimeout = "25P04"

func classOfCode(err *pgconn.PgError) Class {
	switch err.Code {
	case pgerrcode.ReadOnlySQLTransaction:
		return ReadOnly
	case pgerrcode.LockNotAvailable, pgerrcode.SerializationFailure, pgerrcode.DeadlockDetected:
		return Conflict
	case pgerrcode.CheckViolation:
		// A violated CHECK has a name. The error for a row without a partition has none.
		if err.ConstraintName == "" {
			return NoPartition
		}
	case pgerrcode.IdleInTransactionSessionTimeout, transactionTimeout:
		return Shutdown
	case pgerrcode.FeatureNotSupported:
		// The plan was prepared before the schema changed. pgx prepares it again for the next attempt.
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
		return fmt.Errorf("%w (this program knows another schema: run \"recorder migrate\", or a newer program if the schema is newer)", err)
	case pgerrcode.InsufficientPrivilege:
		return fmt.Errorf("%w (the role must be a member of %s: run \"recorder migrate\")", err, migrations.WriterRole)
	case pgerrcode.LockNotAvailable:
		return fmt.Errorf("%w (another session holds a lock of the record, such as a recorder, an erasure or a migration: wait for it, or end it)", err)
	case pgerrcode.InvalidSQLStatementName, pgerrcode.DuplicatePreparedStatement:
		return fmt.Errorf("%w (a pooler in transaction mode: add default_query_exec_mode=exec to the URL)", err)
	}
	if pgErr.Where != "" {
		return fmt.Errorf("%w (%s)", err, pgErr.Where)
	}
	return err
}
