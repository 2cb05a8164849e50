package changelog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/replay/entries"
)

func TestEqualDeltasOfOneObjectCountOnce(t *testing.T) {
	at := time.Date(2026, 11, 25, 13, 18, 0, 0, time.UTC)
	said := func(uid string) *entries.Entry {
		e := &entries.Entry{}
		e.UID, e.OccurredAt = uid, at
		return e
	}
	var s groups
	for _, uid := range []string{"a", "b", "a", "c", "b"} {
		require.Empty(t, s.add(said(uid), "restarted"))
	}
	var sizes [][]string
	for len(s.waiting) > 0 {
		var uids []string
		for _, e := range s.next().all {
			uids = append(uids, e.UID)
		}
		sizes = append(sizes, uids)
	}
	require.Equal(t, [][]string{{"a", "b"}, {"a", "c", "b"}}, sizes)
	require.Empty(t, s.byKey)
}
