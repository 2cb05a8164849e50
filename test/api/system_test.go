package api_test

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/controlplane/objects"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

//go:embed testdata/more.yaml
var more []byte

// A system is a control plane that was recorded, and the API of its past. No client writes to it any more.
type system struct {
	plane  *controlplane.ControlPlane
	pool   *pgxpool.Pool
	record *history.Record
	theirs *server // the real API server
	ours   *server // at the end of the record, unless a question names another instant
	kinds  []kind
	cuts   []revision // at which all streams stood, oldest first; the last is the end

	arguments   []string  // of the recorder
	databaseURL string    // of the record
	clients     *clientCA // whose certificates the API server takes
}

func startSystem(t *testing.T) *system {
	t.Helper()
	clients := newClientCA(t)
	s := &system{clients: clients, plane: controlplane.ForTest(t, controlplane.Options{APIServer: controlplane.APIServerOptions{
		// Its identity is a Lease that it renews every ten seconds.
		Args: []string{"--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false", "--client-ca-file=" + clients.file},
	}})}
	database := pgtest.New(t, pgtest.EmptyRecord)
	s.pool = database.Pool(t)
	kubeconfig, err := s.plane.Kubeconfig()
	require.NoError(t, err)
	s.databaseURL = database.URL()
	s.arguments = []string{"--kubeconfig", kubeconfig, "--database", s.databaseURL, "--data-dir", t.TempDir(), "--cluster-name", "test", "--listen", "127.0.0.1:0"}
	recorder := recordertest.Start(t, s.arguments...)
	recorder.AwaitReady(t)
	begin := s.revision(t)
	maker := objects.New(t, s.plane.Config())
	maker.Apply(objects.Shop)
	maker.Apply(more)
	makeSprings(t, maker)
	written := s.revision(t)
	newWriter(t, maker).write(*writes)
	if *workloads {
		s.runWorkloads(t, maker)
	}
	s.awaitRecorded(t, begin)
	recorder.Terminate(t)

	s.record, err = history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(s.record.Close)
	s.cuts = s.findCuts(t, written)
	s.theirs = realServer(t, s.plane)
	s.ours = pastServer(t, s)
	s.kinds = s.findKinds(t)
	return s
}

func (s *system) revision(t *testing.T) int64 {
	t.Helper()
	revision, err := s.plane.Etcd.Revision(t.Context())
	require.NoError(t, err)
	return revision
}

// end is the last instant of the record.
func (s *system) end() revision { return s.cuts[len(s.cuts)-1] }

// awaitRecorded returns when the record has all that was written after a revision.
func (s *system) awaitRecorded(t *testing.T, after int64) {
	t.Helper()
	var missing []string
	recordertest.Eventually(t.Context(), t, "the record has each write", func() bool {
		missing = s.unrecorded(t, after)
		return len(missing) == 0
	})
}

// unrecorded are the keys of etcd that were written after a revision and whose write is not on record.
func (s *system) unrecorded(t *testing.T, after int64) []string {
	t.Helper()
	history, err := s.plane.Etcd.History(t.Context(), after+1, 0)
	require.NoError(t, err)
	keys := make(map[int64]string, len(history))
	for _, write := range history {
		if isObject(write.Key) {
			keys[write.Rev] = write.Key
		}
	}
	rows, err := s.pool.Query(t.Context(), `SELECT r FROM unnest($1::bigint[]) r EXCEPT SELECT resource_version::bigint FROM kuberewind.deltas WHERE cluster = 'test'`,
		slices.Collect(maps.Keys(keys)))
	require.NoError(t, err)
	defer rows.Close()
	var missing []string
	for rows.Next() {
		var revision int64
		require.NoError(t, rows.Scan(&revision))
		missing = append(missing, keys[revision])
	}
	require.NoError(t, rows.Err())
	return missing
}

// isObject reports whether the key is an object, and not internal data of the API server.
func isObject(key string) bool {
	for _, private := range []string{"/registry/masterleases/", "/registry/ranges/"} {
		if strings.HasPrefix(key, private) {
			return false
		}
	}
	return true
}

// requireQuiet fails if something was written since the record ended: then the answers were of another state.
func (s *system) requireQuiet(t *testing.T) {
	t.Helper()
	require.Empty(t, s.unrecorded(t, s.end().rv), "written while answers were compared")
}
