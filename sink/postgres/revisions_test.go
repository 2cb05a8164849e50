package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNewestRevisionsAreThoseOfTheHistoryThatIs(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(watched(pods, Added, made(t, "ns", "old", "1", "5", "{}")))
	r.now = noon.Add(2 * recentFor)
	r.commit(watched(pods, Added, made(t, "ns", "x", "2", "7", "{}")))
	newest := func() []string {
		r.reopen()
		pods = r.pods()
		found, err := r.sink.Revisions(t.Context())
		require.NoError(t, err)
		return found[pods.ID()]
	}
	require.Equal(t, []string{"7"}, newest(), "5 was long ago")

	r.commit(interruptedBy(pods, causeReversed, "etcd was restored"))
	require.Empty(t, newest(), "7 may be another's now")
	r.commit(replacedBy(pods, causeReversed, "6"), watched(pods, Added, made(t, "ns", "y", "3", "8", "{}")))
	require.Equal(t, []string{"8"}, newest())
}

func TestSomeOfWhatWasRecordedLastIsLookedAtAgain(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, causeFirstList, "4"), watched(pods, Added, made(t, "ns", "old", "1", "5", "{}")))
	r.now = noon.Add(2 * unprovenFor)
	var items []Item
	for i := range 10 * unproven {
		items = append(items, watched(pods, Added, made(t, "ns", fmt.Sprint("x", i), fmt.Sprint("u", i), fmt.Sprint(100+i), "{}")))
	}
	r.commit(append(items, watched(pods, Deleted, made(t, "ns", "x0", "u0", "900", "{}")))...)
	look := func() []Version {
		r.reopen()
		pods = r.pods()
		found, err := r.sink.Unproven(t.Context())
		require.NoError(t, err)
		return found[pods.ID()]
	}
	found := look()
	require.InDelta(t, unproven, len(found), 1)
	require.Equal(t, r.now, found[0].Observed.UTC())
	require.Equal(t, []string{"ns", "x9", "u9", "109"}, []string{found[0].Namespace, found[0].Name, found[0].UID, found[0].ResourceVersion})

	r.commit(interruptedBy(pods, causeReversed, "etcd was restored"))
	require.Empty(t, look(), "it is known to be of another history")
}
