// Package pgtest gives tests real PostgreSQL databases: an empty one, or one with a schema, per test.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		db := pgtest.New(t, migrate) // func(context.Context, *pgx.Conn) error
//		pool := db.Pool(t)
//		…
//	}
//
// # What it guarantees
//
//   - Each call of New makes a new database, and drops it after the test. The setup runs once per process and server,
//     into a template; each database is a copy of that.
//   - Each process has one server, started at the first use in a temporary directory, with fsync off. If the tests run
//     as root, the server runs under another account. The directory is in /dev/shm if 2 GiB are free there.
//   - Nothing outlives the process. A watchdog waits until the process ends for any reason, stops the server and
//     removes the directory.
//   - With TEST_DATABASE_URL (a postgres:// URL whose role may create databases) the tests use that server instead. If
//     the process is killed, Main cannot drop its databases there; their names begin with pgtest_.
//   - StartServer gives a test its own server, which it may stop, kill and restart. As root on Linux, which can mount a
//     small file system, the test can also fill its disk. If the user lacks a right that a test needs, the test is
//     skipped with a reason.
//
// # What it rejects, and why
//
//   - Faults of the shared server, because tests run in parallel on it. Faults of one database (cut or refused
//     connections, read-only, a limit of connections) are methods of Database.
//   - Setup functions that differ only in the variables they capture. The package identifies them by their code, so two
//     closures made at one place count as one.
//
// The binaries come from where internal/embedded finds them; KUBEREWIND_POSTGRES_BIN names others.
//
// # Goroutines
//
// None, except those of pools, which are closed with their test.
package pgtest
