package postgres

import (
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
