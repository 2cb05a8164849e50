package system_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A hunt searches for a word: as it is, in base64, and in base64 of base64, at all alignments.
type hunt [][]byte

func newHunt(word string) hunt {
	forms := hunt{[]byte(word)}
	last := forms
	for range 2 {
		var next hunt
		for _, form := range last {
			for shift := range 3 {
				next = append(next, encoded(form, shift))
			}
		}
		forms, last = append(forms, next...), next
	}
	return forms
}

// encoded is what is sure to stand in base64 of a text that has form behind so many bytes, modulo 3.
func encoded(form []byte, shift int) []byte {
	text := base64.RawStdEncoding.EncodeToString(append(bytes.Repeat([]byte{0}, shift), form...))
	text = text[[]int{0, 2, 3}[shift]:]
	if (shift+len(form))%3 != 0 {
		text = text[:len(text)-1] // what comes next has a part in it
	}
	return []byte(text)
}

// in gives where one of the forms stands.
func (h hunt) in(data []byte) (found []string) {
	for _, form := range h {
		if at := bytes.Index(data, form); at >= 0 {
			found = append(found, fmt.Sprintf("%q", data[max(0, at-80):min(len(data), at+len(form)+40)]))
		}
	}
	return found
}

// hunts are for a word that must be nowhere, and for one that is recorded: it shows that the search would find the other.
type hunts struct{ canary, control hunt }

func word(t *testing.T, prefix string) string {
	t.Helper()
	random := make([]byte, 8)
	_, err := rand.Read(random)
	require.NoError(t, err)
	return fmt.Sprintf("%s%xZ", prefix, random)
}

// clean requires that some texts hold all forms of the control, and none of the canary.
func (h hunts) clean(t *testing.T, where string, texts map[string][]byte) {
	t.Helper()
	controls := map[string]bool{}
	for name, text := range texts {
		require.Empty(t, h.canary.in(text), "the canary is in %s, %s", where, name)
		for _, form := range h.control[:4] {
			controls[string(form)] = controls[string(form)] || bytes.Contains(text, form)
		}
	}
	for form, found := range controls {
		require.True(t, found, "the search of %s is blind to %s", where, form)
	}
}

// control is a ConfigMap with all forms of a word, and some noise.
func control(t *testing.T, name, word string, size int) *unstructured.Unstructured {
	t.Helper()
	return object("v1", "ConfigMap", "default", name, map[string]any{"data": texts("raw", word, "b0", in64(word), "b1", in64("x"+word), "b2", in64("xx"+word), "noise", noisy(t, "", size))})
}

func TestNoValueOfASecretIsInADumpAFileAWALASpoolACheckpointOrALog(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t)
	w := lentWorld(t)
	w.database = server.New(t, nil).URL()
	canary, known := word(t, "canary"), word(t, "control")
	h := hunts{newHunt(canary), newHunt(known)}
	a := w.act(t)
	shapes := canaryShapes(t, canary)
	make64 := func(suffix string) {
		for _, s := range shapes {
			a.create(secrets, object("v1", "Secret", "default", s.name+suffix, s.body))
			if s.then != nil {
				s.then(a, s.name+suffix)
			}
		}
	}

	recorder := w.recordedWith(t, []string{"--log-level", "debug", "--queue-size", "1Mi"})
	a.create(configMaps, control(t, "control", known, 10))
	make64("")
	w.awaitSecrets(t, "", len(shapes))
	server.Stop(t)
	for i := range 3 { // more than fits into the queue
		a.create(configMaps, control(t, fmt.Sprint("spooled-", i), known, 500_000))
	}
	recorder.Await(t, "the database does not keep up; waiting entries go to the spool")
	make64("-spooled")
	for _, s := range shapes {
		if s.name != "deleted" && s.name != "finalized" {
			a.delete(secrets, s.name)
		}
	}
	eventually(t.Context(), t, "all of it in the spool", func() bool {
		return recorder.Metrics()["kuberewind_spool_entries"] >= float64(3+2*len(shapes)+8) // each was created, those before deleted but for two, and ten things were done
	})
	recorder.Kill(t)
	h.clean(t, "the spool", w.spooled(t))
	require.Contains(t, recorder.Log(), `"level":"DEBUG"`)
	h.logged(t, recorder)

	server.Start(t)
	recorder = w.recordReady(t)
	recorder.Await(t, "the database has taken all entries of the spool")
	w.connect(t)
	w.awaitSecrets(t, "-spooled", len(shapes))
	w.makeCheckpoint(t)
	recorder.Terminate(t)
	h.logged(t, recorder)
	h.clean(t, "the checkpoint", w.inCheckpoints(t))
	h.clean(t, "a dump", map[string][]byte{"pg_dump": w.dump(t)})
	data := w.dataDirectory(t)
	server.Stop(t)
	files := filesIn(t, filepath.Dir(data))
	wal := map[string][]byte{}
	for path, text := range files {
		if strings.Contains(path, "/pg_wal/") {
			wal[path] = text
			delete(files, path)
		}
	}
	h.clean(t, "the WAL", wal)
	h.clean(t, "the data files", files)
	server.Start(t) // the database is dropped by the test's end
}

// logged requires that a log holds no canary, nor the control: no value is logged.
func (h hunts) logged(t *testing.T, p *recordertest.Process) {
	t.Helper()
	require.Empty(t, h.canary.in([]byte(p.Log())), "the canary is in the log")
	require.Empty(t, h.control.in([]byte(p.Log())), "a value is in the log")
}

// awaitSecrets waits until so many Secrets whose names end so are on record.
func (w *world) awaitSecrets(t *testing.T, suffix string, want int) {
	t.Helper()
	eventually(t.Context(), t, fmt.Sprintf("%d Secrets on record", want), func() bool {
		var n int
		err := w.db.QueryRow(t.Context(), `SELECT count(DISTINCT name) FROM kuberewind.deltas WHERE resource = 'secrets' AND namespace = 'default'
			AND (name LIKE '%-spooled') = ($1 <> '')`, suffix).Scan(&n)
		return err == nil && n == want
	})
}

// spooled gives the files of the data directory, and what the records of the spool hold.
func (w *world) spooled(t *testing.T) map[string][]byte {
	t.Helper()
	texts := filesIn(t, w.dataDir)
	dirs, err := filepath.Glob(filepath.Join(w.dataDir, "spool", "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	s, err := spool.Open(spool.Options{Dir: dirs[0], ReadOnly: true, Shared: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	s.SeekTo(s.First())
	for {
		record, ok, err := s.Read()
		require.NoError(t, err)
		if !ok {
			return texts
		}
		texts[fmt.Sprint("record ", len(texts))] = bytes.Clone(record)
	}
}

// inCheckpoints gives the objects of all checkpoints.
func (w *world) inCheckpoints(t *testing.T) map[string][]byte {
	t.Helper()
	rows, err := w.db.Query(t.Context(), `SELECT data FROM kuberewind.checkpoint_blocks WHERE block > 0`) // which is their directory
	require.NoError(t, err)
	blocks, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(t, err)
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	docs := map[string][]byte{}
	for _, block := range blocks {
		records, err := decoder.Block(block)
		require.NoError(t, err)
		for i := range records {
			docs[fmt.Sprint(records[i].Stream, " ", records[i].Namespace, "/", records[i].Name)] = records[i].Doc
		}
	}
	return docs
}

func (w *world) dump(t *testing.T) []byte {
	t.Helper()
	var programs string
	require.NoError(t, w.db.QueryRow(t.Context(), `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&programs))
	program := filepath.Join(programs, "pg_dump")
	if _, err := os.Stat(program); err != nil {
		program = "pg_dump"
	}
	text, err := exec.CommandContext(t.Context(), program, "--dbname", w.database).Output()
	require.NoError(t, err, "pg_dump of PostgreSQL's client programs")
	return text
}

func (w *world) dataDirectory(t *testing.T) (dir string) {
	t.Helper()
	require.NoError(t, w.db.QueryRow(t.Context(), `SHOW data_directory`).Scan(&dir))
	return dir
}

// filesIn reads all files of a folder.
func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	}))
	return files
}
