package badinput_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

// outage is a fault of a database that a recorder has to sit out.
type outage struct {
	// database makes one, and the address that the recorder gets.
	database func(t *testing.T) (*pgtest.Database, string)
	begin    func(t *testing.T, db *pgtest.Database)
	end      func(t *testing.T, db *pgtest.Database)
	// words that the log must show while it lasts.
	words []string
}

func shared(t *testing.T) (*pgtest.Database, string) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	return db, db.URL()
}

func private(t *testing.T) (*pgtest.Database, string) {
	db := pgtest.StartServer(t).New(t, pgtest.EmptyRecord)
	return db, db.URL()
}

func asWriter(t *testing.T) (*pgtest.Database, string) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	return db, db.Login(t, migrations.WriterRole)
}

var outages = map[string]outage{
	"sessions ended by an administrator, and no new ones": {
		shared,
		func(t *testing.T, db *pgtest.Database) { db.RefuseConnections(t); db.CutConnections(t) },
		func(t *testing.T, db *pgtest.Database) { db.AllowConnections(t) },
		[]string{"not currently accepting connections"},
	},
	"read-only": {
		shared,
		func(t *testing.T, db *pgtest.Database) { db.ReadOnly(t) },
		func(t *testing.T, db *pgtest.Database) { db.ReadWrite(t) },
		[]string{"read-only transaction"},
	},
	"too many connections": {
		asWriter,
		func(t *testing.T, db *pgtest.Database) { db.LimitConnections(t, 0); db.CutConnections(t) },
		func(t *testing.T, db *pgtest.Database) { db.LimitConnections(t, -1) },
		[]string{"too many connections"},
	},
	"stopped": {
		private,
		func(t *testing.T, db *pgtest.Database) { db.Server().Stop(t) },
		func(t *testing.T, db *pgtest.Database) { db.Server().Start(t) },
		[]string{"failed to connect"},
	},
	"killed": {
		private,
		func(t *testing.T, db *pgtest.Database) { db.Server().Kill(t) },
		func(t *testing.T, db *pgtest.Database) { db.Server().Start(t) },
		[]string{"failed to connect"},
	},
}

// An outage comes while a transaction has moved the head and not yet written its rows, and lasts while the server serves more.
func TestAnOutageOfTheDatabaseInMidBatchIsSatOutAndNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, fault := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, address := fault.database(t)
			cms := configMaps()
			s := newServer(t, cms)
			a, _ := cms.create("a"), cms.create("b")
			start := s.head()
			r := begin(t, s, address)
			a.update(2)
			open(t, db).awaitCount(cms, 4)

			release := holdUp(t, db, a)
			fault.begin(t, db)
			release()
			cms.create("c").update(3)
			a.delete()
			r.await(t, append(fault.words, "level=WARN", "the database did not commit the queued deltas; retrying")...)
			a.update(1)
			fault.end(t, db)
			record := open(t, db)
			record.awaitCount(cms, 11)
			r.end(t)
			record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			record.requireGaps(cms, "first_list:relisted")
		})
	}
}

// holdUp makes the next commit stop in its middle, behind a lock, and gives what lets it go on.
func holdUp(t *testing.T, db *pgtest.Database, a *life) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL())
	require.NoError(t, err)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE kuberewind.lives, kuberewind.deltas_data IN EXCLUSIVE MODE")
	require.NoError(t, err)
	a.update(1)
	open(t, db).await("a commit that waits", `SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'COPY kuberewind.deltas_data%')`)
	return func() { _ = conn.Close(context.Background()) } // it may have been cut
}

func TestAFullDiskIsSatOutAndNothingIsLost(t *testing.T) {
	t.Parallel()
	db := pgtest.StartServerOnDisk(t, 160<<20).New(t, pgtest.EmptyRecord)
	cms := configMaps()
	s := newServer(t, cms)
	a, _ := cms.create("a"), cms.create("b")
	start := s.head()
	r := begin(t, s, db.URL())
	record := open(t, db)
	record.awaitCount(cms, 2)
	db.Server().FillDisk(t)
	for i := range 4 {
		cms.write("ADDED", fmt.Sprint("big", i), cms.object(fmt.Sprint("big", i), fmt.Sprint("uid-", i), `,"data":{"v":"`+noise(1<<20)+`"}`))
	}
	a.update(2)
	// disk_full: PostgreSQL has other words if half a page still fits.
	r.await(t, "level=WARN", "the database did not commit the queued deltas; retrying", "SQLSTATE 53100")
	a.update(1)
	db.Server().FreeDisk(t)
	record.awaitCount(cms, 9)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// noise is n letters that do not compress.
func noise(n int) string {
	var text strings.Builder
	state := uint32(1)
	for range n {
		state = state*1664525 + 1013904223
		text.WriteByte('a' + byte(state>>27)%26)
	}
	return text.String()
}

func TestAQueueThatIsFullHoldsTheWatchBackAndNothingIsLost(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.EmptyRecord)
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	start := s.head()
	r := begin(t, s, db.URL(), func(cfg *config.Config) { cfg.QueueSize = "1Mi" })
	open(t, db).awaitCount(cms, 1)
	db.RefuseConnections(t)
	db.CutConnections(t)
	value := noise(256 << 10)
	for i := range 20 {
		cms.write("MODIFIED", "a", cms.object("a", a.uid, fmt.Sprintf(`,"data":{"n":"%d","v":%q}`, i, value)))
	}
	r.await(t, "level=WARN", "the database did not commit the queued deltas; retrying", "not currently accepting connections")
	db.AllowConnections(t)
	record := open(t, db)
	record.awaitCount(cms, 21)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

func TestAMigrationThatWasKilledIsFinishedAndTheRecordBegun(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	// golang-migrate's leftover: its note says that the first migration was begun.
	db.Exec(t, "CREATE SCHEMA kuberewind", "CREATE TABLE kuberewind.schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)",
		"INSERT INTO kuberewind.schema_migrations VALUES (1, true)")
	cms := configMaps()
	s := newServer(t, cms)
	cms.create("a")
	start := s.head()
	r := begin(t, s, db.URL())
	record := open(t, db)
	record.awaitCount(cms, 1)
	r.end(t)
	r.await(t, "a migration was interrupted")
	record.requireHistory(cms, cms.listed(t, start))
}

func TestARightThatIsTakenAwayEndsTheRecorderWithAClearErrorAndLosesNothing(t *testing.T) {
	t.Parallel()
	db, address := asWriter(t)
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	start := s.head()
	r := begin(t, s, address)
	record := open(t, db)
	record.awaitCount(cms, 1)
	db.Exec(t, "REVOKE INSERT ON kuberewind.deltas_data FROM "+migrations.WriterRole)
	a.update(2)
	<-r.done
	require.ErrorContains(t, r.err, "permission denied")
	require.ErrorContains(t, r.err, migrations.WriterRole)
	require.ErrorContains(t, r.err, `run "recorder migrate"`)

	db.Exec(t, "GRANT INSERT ON kuberewind.deltas_data TO "+migrations.WriterRole)
	a.update(1)
	r = begin(t, s, address, sameKey(r))
	record.awaitCount(cms, 4)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

func TestAStreamThatCanNeverBeOpenedEndsTheRecorder(t *testing.T) {
	t.Parallel()
	db, address := asWriter(t)
	db.Exec(t, "REVOKE INSERT ON kuberewind.streams FROM "+migrations.WriterRole)
	s := newServer(t, configMaps())
	r := record(t, s, address)
	select {
	case <-r.done:
	case <-time.After(patience):
		t.Fatal("it looks alive and records nothing")
	}
	require.ErrorContains(t, r.err, "open stream /configmaps")
	require.ErrorContains(t, r.err, "permission denied")
	require.ErrorContains(t, r.err, migrations.WriterRole)
}
