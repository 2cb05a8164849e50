package recorder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/kube"
)

var endedThings = kube.Resource{Name: "things", Kind: "Thing", Version: "v1", Namespaced: true, DefinitionUID: "u"}

// half makes a stream of which a part is on disk, since the database is slow.
func half(t *testing.T) (*swept, *stream, *handler) {
	t.Helper()
	s := newSwept(t)
	s.spill(t.TempDir())
	st, things := s.follow("things", "Thing")
	require.NoError(t, things.Replace([]any{served(t, "Thing", "a", 11)}, "11"))
	s.pump()
	for rv := 12; rv < 17; rv++ {
		require.NoError(t, things.Update(served(t, "Thing", "a", rv)))
	}
	require.Less(t, s.queue.Stats().Entries, 5)
	things.Close()
	return s, st, &handler{Recorder: s.recorder}
}

func TestAnEndWaitsForWhatIsOnDiskAndHoldsNobodyUp(t *testing.T) {
	s, st, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	s.pump()
	<-st.ending.done
	s.pump()
	deltas, _ := s.told(7)
	require.Equal(t, []string{"Deleted inferred things a"}, deltas)
	require.Equal(t, "99", st.start(nil).position)
}

func TestAnEndIsGivenUpWhereTheResourceIsServedAgain(t *testing.T) {
	s, st, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	st.ending.stop()
	require.Empty(t, st.ended)
	s.pump()
	deltas, _ := s.told(7)
	require.Empty(t, deltas)
}
