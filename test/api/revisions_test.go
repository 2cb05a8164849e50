package api_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
)

// A revision is a state of the whole cluster: that of etcd at rv, and that of the record at seq.
type revision struct {
	seq, rv int64
	at      time.Time // what ages are relative to
}

func (r revision) String() string { return "seq:" + strconv.FormatInt(r.seq, 10) }

// findCuts finds all revisions after one. A seq is a revision if the record had nothing of later versions then, and had all of earlier
// ones: streams are read side by side.
func (s *system) findCuts(t *testing.T, after int64) []revision {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `SELECT seq, resource_version::bigint FROM kuberewind.deltas WHERE type <> 'Sync' ORDER BY seq`)
	require.NoError(t, err)
	deltas, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r revision, err error) { return r, row.Scan(&r.seq, &r.rv) })
	require.NoError(t, err)
	oldest := make([]int64, len(deltas)+1) // of the versions from there on
	oldest[len(deltas)] = math.MaxInt64
	for i := len(deltas) - 1; i >= 0; i-- {
		oldest[i] = min(oldest[i+1], deltas[i].rv)
	}
	var cuts []revision
	var newest int64
	for i, delta := range deltas {
		newest = max(newest, delta.rv)
		if newest > after && newest < oldest[i+1] {
			cuts = append(cuts, revision{seq: delta.seq, rv: newest})
		}
	}
	require.NotEmpty(t, cuts, "the record has no revision after %d", after)
	return cuts
}

// dated looks up the time of a revision.
func (s *system) dated(t *testing.T, r revision) revision {
	t.Helper()
	point, err := s.record.Resolve(t.Context(), history.AtSeq(r.seq), history.Scope{})
	require.NoError(t, err)
	if r.at = point.Time; r.seq == s.end().seq {
		extent, err := s.record.Extent(t.Context())
		require.NoError(t, err)
		r.at = extent.LastAt // until when the recorder knows that nothing else happened
	}
	return r
}

// reached is the version up to which the record knows a resource: beyond the last write only by bookmarks.
func (s *system) reached(t *testing.T, k kind) (last int64) {
	t.Helper()
	streams, err := s.record.Streams(t.Context())
	require.NoError(t, err)
	for _, stream := range streams {
		if stream.Resource == k.Resource {
			rv, err := strconv.ParseInt(stream.Position, 10, 64)
			require.NoError(t, err)
			last = max(last, rv)
		}
	}
	return last
}

// position is the version of the last write to a resource up to a revision. If there was none, it is that up to which the record knows it.
func (s *system) position(t *testing.T, k kind, r revision) int64 {
	t.Helper()
	var rv *int64
	require.NoError(t, s.pool.QueryRow(t.Context(), `SELECT max(resource_version::bigint) FROM kuberewind.deltas WHERE resource = $1 AND seq <= $2 AND type <> 'Sync'`, k.Resource, r.seq).Scan(&rv))
	if rv == nil {
		return s.reached(t, k)
	}
	return *rv
}
