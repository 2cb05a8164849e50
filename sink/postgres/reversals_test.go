package postgres

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

func TestARollbackIsUnnotifiedForStreamsNotListedSince(t *testing.T) {
	r := record(t, newDatabase(t))
	var streams []*Stream
	open := func(names ...string) {
		streams = nil
		for _, name := range names {
			streams = append(streams, r.stream(StreamSpec{Resource: name, Kind: name, Namespaced: true}))
		}
	}
	all := []string{"pods", "services", "secrets", "widgets"}
	open(all...)
	for _, st := range streams {
		r.commit(replacedBy(st, delta.CauseFirstList, "10"))
	}
	r.now = noon.Add(30 * time.Second)
	r.commit(interruptedBy(streams[0], delta.CauseHistoryReversed, "pods x was something else"))
	r.commit(interruptedBy(streams[1], delta.CauseHistoryReversed, "pods x was something else"))
	r.now = noon.Add(31 * time.Second)
	r.commit(replacedBy(streams[1], delta.CauseHistoryReversed, "8"))
	r.commit(replacedBy(streams[2], "expired", "9"))
	r.now = noon.Add(2 * time.Hour)
	r.commit(interruptedBy(streams[3], "forbidden", ""))

	r.reopen()
	open(append(all, "younger")...)
	found, err := r.sink.Prior().OtherReversals(t.Context())
	require.NoError(t, err)
	const proof = "pods x was something else"
	for stream, reversals := range found {
		for i := range reversals {
			found[stream][i].FromAt = reversals[i].FromAt.UTC()
		}
	}
	require.Equal(t, map[int32][]Reversal{streams[3].ID(): {{streams[0].ID(), proof, "10", noon}, {streams[1].ID(), proof, "10", noon}}}, found)

	r.commit(replacedBy(streams[3], "forbidden", "12"))
	found, err = r.sink.Prior().OtherReversals(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

// An API server with its own etcd is rolled back, and uninstalled later. After that, no recorder can find out whether
// other streams shared its etcd.
func TestARollbackIsNotifiedForStreamsThatContinuedLongAfterIt(t *testing.T) {
	r := record(t, newDatabase(t))
	metrics, pods, idle := r.stream(StreamSpec{Resource: "metrics", Kind: "Metrics"}), r.pods(), r.stream(StreamSpec{Resource: "leases", Kind: "Lease"})
	for _, st := range []*Stream{metrics, pods, idle} {
		r.commit(replacedBy(st, delta.CauseFirstList, "10"))
	}
	r.now = noon.Add(30 * time.Second)
	r.commit(interruptedBy(metrics, delta.CauseHistoryReversed, "metrics x was something else"))
	r.now = noon.Add(notifyWithin / 2)
	r.commit(watched(pods, delta.Added, made(t, "ns", "x", "1", "11", "{}")))
	untold := func() (streams []int32) {
		t.Helper()
		r.reopen()
		pods, idle = r.pods(), r.stream(StreamSpec{Resource: "leases", Kind: "Lease"})
		found, err := r.sink.Prior().OtherReversals(t.Context())
		require.NoError(t, err)
		return slices.Collect(maps.Keys(found))
	}
	require.ElementsMatch(t, []int32{pods.ID(), idle.ID()}, untold())
	r.now = noon.Add(2 * notifyWithin)
	r.commit(watched(pods, delta.Added, made(t, "ns", "y", "2", "12", "{}")))
	require.Equal(t, []int32{idle.ID()}, untold())
}
