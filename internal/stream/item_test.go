package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestADeletionWithoutGraceHappenedByThePausesEnd(t *testing.T) {
	from := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	to := from.Add(10 * time.Minute)
	object := &kube.Object{ObjectMeta: metav1.ObjectMeta{Name: "x", CreationTimestamp: metav1.NewTime(from.Add(time.Minute))}}
	occurred := func(delta delta.Type) time.Time {
		s := bare("things")
		s.dating.live.resume(from, to)
		item, err := s.item(&deltafifo.Entry{Delta: cache.Delta{Type: delta, Object: object}, Observed: to.Add(time.Second)})
		require.NoError(t, err)
		return item.Occurred
	}
	require.Equal(t, from.Add(time.Minute), occurred(delta.Added))
	require.Equal(t, to, occurred(delta.Deleted), "the creation says nothing about the end")

	asked := metav1.NewTime(from.Add(5 * time.Minute))
	object.DeletionTimestamp = &asked
	require.Equal(t, asked.Time, occurred(delta.Deleted))
}

func TestAMarkerIsAboutEachStreamThatItNames(t *testing.T) {
	seen := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	s, other := bare("things"), bare("things")
	items, err := Items([]deltafifo.Entry{{
		Stream: s, Observed: seen, Marker: &delta.Marker{Kind: delta.Interrupted, Cause: delta.CauseHistoryReversed, Detail: "proof", FromRV: "7", FromTime: seen},
		Others: []deltafifo.OtherStream{{Stream: other, FromRV: "5"}},
	}})
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Equal(t, "7", items[0].Marker.FromRV)
	require.Equal(t, delta.Marker{Kind: delta.Interrupted, Cause: delta.CauseHistoryReversed, Detail: "proof", FromRV: "5"}, items[1].Marker)
	require.Equal(t, seen, items[1].Observed)
	require.True(t, s.dating.live.rolledBack)
	require.True(t, other.dating.live.rolledBack)
}

func TestADecisionHasTheTimeOfItsEntry(t *testing.T) {
	seen := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	s := bare("things")
	s.decisions.exclusions.add(postgres.Item{Kind: postgres.Excluded, UID: "1"})
	items, err := Items([]deltafifo.Entry{{Stream: s, Observed: seen, Position: "7", Source: delta.SourceWatch, Attached: s.decisions.exclusions.attach()}})
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Equal(t, postgres.Excluded, items[0].Kind)
	require.Equal(t, seen, items[0].Observed, "later items in the queue must not be dated by the time of writing")
}
