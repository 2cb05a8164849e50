package badinput_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// victim is a recorder of its own process, as it is shipped, that is going to be killed.
type victim struct {
	*recordertest.Process
	dir string
}

// spawn starts one with a queue that is soon full.
func spawn(t *testing.T, s *server, database, dir string) *victim {
	t.Helper()
	return &victim{dir: dir, Process: recordertest.Start(t, "--queue-size=1Mi", "--listen=127.0.0.1:0",
		"--kubeconfig", s.kubeconfig(t), "--database", database, "--data-dir", dir)}
}

// awaitSpooled waits until so many entries are on disk.
func (v *victim) awaitSpooled(t *testing.T, want int) {
	t.Helper()
	recordertest.Eventually(t.Context(), t, fmt.Sprintf("%d entries on disk", want), func() bool {
		return int(v.Metrics()["kuberewind_spool_entries"]) >= want
	})
}

// heir starts a recorder with what the victim has left.
func (v *victim) heir(t *testing.T, s *server, database string, adapt ...func(*config.Config)) *recording {
	t.Helper()
	return record(t, s, database, append(adapt, func(cfg *config.Config) { cfg.DataDir, cfg.QueueSize = v.dir, "1Mi" })...)
}

// flood writes versions of an object that do not fit into the queue.
func flood(r *resource, l *life, versions int) {
	for i := range versions {
		r.write("MODIFIED", l.name, r.object(l.name, l.uid, fmt.Sprintf(`,"data":{"n":"%d","v":%q}`, i, noise(100<<10))))
	}
}

// outgrown is a recorder whose database went away, and that has spooled the deltas since.
func outgrown(t *testing.T, compact bool) (s *server, cms *resource, start int, db *pgtest.Database, v *victim) {
	t.Helper()
	db, address := private(t)
	cms = configMaps()
	s = newServer(t, cms)
	a, b := cms.create("a"), cms.create("b")
	start = s.head()
	v = spawn(t, s, address, t.TempDir())
	v.AwaitReady(t)
	open(t, db).awaitCount(cms, 2)
	db.Server().Stop(t)
	flood(cms, a, 40)
	b.delete()
	c := cms.create("c")
	c.update(3)
	v.awaitSpooled(t, 45)
	if compact {
		cms.compact()
	}
	c.update(1)
	v.awaitSpooled(t, 46)
	v.Await(t, "the database does not keep up; waiting entries go to the spool")
	return s, cms, start, db, v
}

// The server has forgotten what came during the outage: only the spool has it.
func TestASpoolSurvivesKill9AndIsRecordedOnceWithoutAGap(t *testing.T) {
	t.Parallel()
	s, cms, start, db, v := outgrown(t, true)
	v.Kill(t)
	cms.create("d").update(2)
	r := v.heir(t, s, db.URL())
	r.await(t, "the database does not answer; waiting for it")
	db.Server().Start(t)
	r.await(t, "the previous recorder left entries in the spool; writing them first")
	cms.create("e").update(2)
	record := open(t, db)
	record.awaitCount(cms, 2+46+6)
	r.await(t, "the database has taken all entries of the spool")
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
	require.Equal(t, []string{"true"}, record.strings(`SELECT (from_at >= max(observed_at) AND from_at < to_at)::text
		FROM kuberewind.pauses, kuberewind.deltas WHERE name = 'c' GROUP BY from_at, to_at`), "the watch went on until it was killed")
	left, err := filepath.Glob(filepath.Join(v.dir, "spool", "*", "*.seg"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// It is killed again and again while it drains, wherever it is.
func TestASpoolIsDrainedOnceHoweverOftenTheRecorderIsKilled(t *testing.T) {
	t.Parallel()
	s, cms, start, db, v := outgrown(t, true)
	v.Kill(t)
	db.Server().Start(t)
	record := open(t, db)
	for i := range 4 {
		next := spawn(t, s, db.URL(), v.dir)
		if i == 0 {
			next.Await(t, "the previous recorder left entries in the spool")
		}
		next.Await(t, "record opened") // The first recorder may have come to the spool's end before it was killed.
		record.awaitCount(cms, 2+8*(i+1))
		next.Kill(t)
	}
	r := v.heir(t, s, db.URL())
	cms.create("e").update(2)
	record.awaitCount(cms, 2+46+3)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// The recorder and the database were away at once, and the recorder comes back first.
func TestARecorderThatHasRecordedBeforeWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	db, address := private(t)
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	start := s.head()
	dir := t.TempDir()
	there := func(cfg *config.Config) { cfg.DataDir = dir }
	begin(t, s, address, there).end(t)
	db.Server().Stop(t)
	a.update(3)
	r := record(t, s, address, there)
	r.await(t, "level=WARN", "the database does not answer; waiting for it", "does PostgreSQL run there")
	db.Server().Start(t)
	record := open(t, db)
	record.awaitCount(cms, 1+3)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// The database comes back, and the recorder lives on.
func TestASpoolDrainsInOrderWhileMoreComes(t *testing.T) {
	t.Parallel()
	s, cms, start, db, v := outgrown(t, true)
	db.Server().Start(t)
	cms.create("d").update(20)
	record := open(t, db)
	record.awaitCount(cms, 2+46+21)
	v.Await(t, "the database has taken all entries of the spool")
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
	require.Equal(t, s.head(), start+46+21)
}

// A list that is needed while the stream's deltas are on disk waits until they have been read back. Earlier, it would grow old
// while it waits, and keep other streams from listing.
func TestAListIsNotMadeBeforeItCanBeComparedWithWhatWasSpooled(t *testing.T) {
	t.Parallel()
	s, cms, _, db, v := outgrown(t, true)
	s.goAway()
	cms.create("d")
	cms.compact()
	var listed atomic.Int32
	cms.lists.add(always, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.RawQuery == "limit=500" { // not one that recovers history
			listed.Add(1)
		}
		cms.serveList(w, q)
	})
	s.comeBack()
	v.Await(t, "history cannot be recovered")
	v.awaitSpooled(t, 46)
	require.Zero(t, listed.Load())
	db.Server().Start(t)
	record := open(t, db)
	record.await("the end of the gap", `SELECT count(*) = 2 FROM kuberewind.gaps WHERE NOT open`)
	require.EqualValues(t, 1, listed.Load())
	require.Equal(t, 1, record.requireGaps(cms, "first_list:relisted", "expired:relisted")[1].Counts[0], "d appeared, and all else is on record")
}

func TestASpoolThatAnotherRecorderHasOvertakenIsSetAside(t *testing.T) {
	t.Parallel()
	s, cms, start, db, v := outgrown(t, false)
	v.Kill(t)
	db.Server().Start(t)
	key := func(cfg *config.Config) { cfg.RedactionKeyFile = filepath.Join(v.dir, "redaction.key") }
	other := begin(t, s, db.URL(), key)
	record := open(t, db)
	record.awaitCount(cms, 2+46)
	other.end(t)
	r := v.heir(t, s, db.URL())
	r.await(t, "level=ERROR", "set aside", "another recorder has written to the record since")
	cms.create("e").update(2)
	record.awaitCount(cms, 2+46+3)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
	kept, err := filepath.Glob(filepath.Join(v.dir, "spool", "*", "aside-*", "*.seg"))
	require.NoError(t, err)
	require.NotEmpty(t, kept)
}

// The entries after the damage are read from the server again, which still has them.
func TestASpoolThatIsDamagedIsUsedUpToThereAndNothingIsLost(t *testing.T) {
	t.Parallel()
	s, cms, start, db, v := outgrown(t, false)
	v.Kill(t)
	damage(t, v)
	db.Server().Start(t)
	r := v.heir(t, s, db.URL())
	r.await(t, "level=ERROR", "set aside", "the spool was damaged")
	record := open(t, db)
	record.awaitCount(cms, 2+46)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// The damage is met by the recorder that has spooled: it ends, and the next goes on from before it.
func TestASpoolThatCannotBeReadBackEndsTheRecorderAndNothingIsLost(t *testing.T) {
	t.Parallel()
	s, cms, start, db, v := outgrown(t, false)
	damage(t, v)
	db.Server().Start(t)
	v.Await(t, "spooled entries cannot be read back; restart to go on with the readable ones")
	require.Equal(t, 1, v.AwaitEnd(t))
	r := v.heir(t, s, db.URL())
	r.await(t, "level=ERROR", "set aside", "the spool was damaged")
	record := open(t, db)
	record.awaitCount(cms, 2+46)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// damage changes a byte in the middle of what is on disk.
func damage(t *testing.T, v *victim) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(v.dir, "spool", "*", "*.seg"))
	require.NoError(t, err)
	data, err := os.ReadFile(segments[0])
	require.NoError(t, err)
	file, err := os.OpenFile(segments[0], os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte{data[len(data)/2] ^ 1}, int64(len(data)/2))
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

func TestWithoutAFolderForTheSpoolTheWatchesAreHeldBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.EmptyRecord)
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	start := s.head()
	file := writeFile(t, "file", "where the folder should be")
	r := begin(t, s, db.URL(), func(cfg *config.Config) { cfg.QueueSize, cfg.SpoolDir = "1Mi", file })
	r.await(t, "level=ERROR", "the spool cannot be opened: a full queue will hold the watches back")
	open(t, db).awaitCount(cms, 1)
	db.RefuseConnections(t)
	db.CutConnections(t)
	flood(cms, a, 20)
	r.await(t, "level=WARN", "the database did not commit the queued deltas; retrying")
	db.AllowConnections(t)
	record := open(t, db)
	record.awaitCount(cms, 21)
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// smallDisk is a file system of its own.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk takes the right to mount one: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", dir).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	return dir
}

func TestADiskThatIsFullHoldsTheWatchesBackAndNothingIsLost(t *testing.T) {
	t.Parallel()
	db, address := private(t)
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	start := s.head()
	dir := smallDisk(t, "2m")
	r := begin(t, s, address, listening, func(cfg *config.Config) { cfg.QueueSize, cfg.SpoolDir = "1Mi", dir })
	open(t, db).awaitCount(cms, 1)
	db.Server().Stop(t)
	flood(cms, a, 60)
	r.await(t, "level=ERROR", "the spool cannot be written", "no space left on device")
	r.awaitMetric(t, "kuberewind_spool_failing", 1)
	db.Server().Start(t)
	record := open(t, db)
	record.awaitCount(cms, 61)
	r.await(t, "the database has taken all entries of the spool")
	r.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// readOnly makes a disk of a folder, that takes nothing any more.
func readOnly(t *testing.T, folder string) {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "overlay", "-o", "lowerdir="+folder+":"+t.TempDir(), "overlay", folder).CombinedOutput(); err != nil {
		t.Skipf("a read-only disk takes the right to mount one: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", folder).CombinedOutput()
		require.NoError(t, err, string(out))
	})
}

// The database is back, but the spool's disk is read-only now. Nothing on it can be removed.
func TestASpoolOnADiskThatIsReadOnlyIsWrittenOnceThoughTheRecorderIsKilled(t *testing.T) {
	t.Parallel()
	s, cms, start, db, v := outgrown(t, true)
	v.Kill(t)
	readOnly(t, filepath.Join(v.dir, "spool"))
	db.Server().Start(t)
	record := open(t, db)
	next := spawn(t, s, db.URL(), v.dir)
	next.Await(t, "the disk of the spool is read-only")
	record.awaitCount(cms, 2+8)
	next.Kill(t)
	r := v.heir(t, s, db.URL())
	cms.create("e").update(2)
	record.awaitCount(cms, 2+46+3)
	r.end(t)
	again := v.heir(t, s, db.URL())
	cms.create("f")
	record.awaitCount(cms, 2+46+4)
	again.end(t)
	record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
	record.requireGaps(cms, "first_list:relisted")
}

// The spool lies in a place where it cannot be read, and the server has forgotten the entries.
func TestASpoolThatCannotBeOpenedIsAGapIfTheServerHasForgottenIt(t *testing.T) {
	t.Parallel()
	s, cms, _, db, v := outgrown(t, true)
	v.Kill(t)
	locks, err := filepath.Glob(filepath.Join(v.dir, "spool", "*", "lock"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(locks[0]))
	require.NoError(t, os.Mkdir(locks[0], 0o700))
	db.Server().Start(t)
	r := v.heir(t, s, db.URL())
	r.await(t, "level=ERROR", "the spool cannot be opened", "is a directory")
	record := open(t, db)
	record.await("the end of the gap", `SELECT count(*) = 2 FROM kuberewind.gaps WHERE NOT open`)
	r.end(t)
	record.requireGaps(cms, "first_list:relisted", "spool_corrupt:relisted")
}
