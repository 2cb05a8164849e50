package badinput_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// A recorder that starts knows only what it has folded from the record.
func TestChangesOfAPauseAreFoundThoughTheServerHasForgottenThem(t *testing.T) {
	t.Parallel()
	cms := configMaps()
	s := newServer(t, cms)
	gone, again, changed, kept := cms.create("gone"), cms.create("again"), cms.create("changed"), cms.create("kept")
	start := s.head()
	db := pgtest.New(t, pgtest.EmptyRecord)
	r := begin(t, s, db.URL())
	record := open(t, db)
	record.awaitCount(cms, 4)
	r.end(t)

	gone.delete()
	again.delete()
	reborn := cms.create("again")
	changed.update(3)
	cms.compact()
	expiry := s.head()
	r = begin(t, s, db.URL(), sameKey(r))
	// The end of gone, the end of the first again, the second, the last version of changed.
	record.awaitCount(cms, 4+4)
	kept.update(1)
	changed.update(1)
	reborn.update(1)
	record.awaitCount(cms, 4+4+3)
	r.end(t)

	history := record.history(cms)
	requireVersions(t, cms.listed(t, start), history[:4])
	found := map[string]row{}
	for _, x := range history[4:8] {
		found[x.Type+" "+x.source+" "+x.Name] = x
	}
	require.Len(t, found, 4)
	require.Equal(t, gone.uid, found["Deleted inferred gone"].UID)
	require.Equal(t, again.uid, found["Deleted inferred again"].UID)
	require.Equal(t, reborn.uid, found["Sync relist again"].UID)
	require.Contains(t, found, "Sync relist changed")
	requireVersions(t, cms.watched(t, expiry), history[8:])
	for _, x := range history[8:] {
		require.NotEmpty(t, x.patch, x.Name)
		require.Empty(t, x.object, "a patch against what was folded, with no keyframe")
	}
	require.Equal(t, []string{"false", "true"}, record.strings(`SELECT deleted::text FROM kuberewind.objects WHERE name = 'again' ORDER BY 1`))
	g := record.requireGaps(cms, "first_list:relisted", "expired:relisted")[1]
	require.Equal(t, [4]int{1, 1, 2, 1}, g.Counts, "appeared, changed, vanished, unchanged")
}
