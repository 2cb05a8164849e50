package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

func TestOtherContentAtOneResourceVersionIsRecordedOnceWithoutAManager(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	uid := newUID()
	r.commit(watched(pods, delta.Added, made(t, "a", "x", uid, "11", `1`)))
	other := made(t, "a", "x", uid, "11", `2`)
	r.commit(listed(pods, delta.SourceSchema, other), Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Compared, Detail: "v1 abc"}})
	r.commit(listed(pods, delta.SourceSchema, other))
	require.Len(t, r.history(), 2)
	require.Equal(t, "4 5 t", one[string](t, r.db, `SELECT concat_ws(' ', type, source, manager IS NULL) FROM kuberewind.deltas_data WHERE seq = 2`))
	require.Equal(t, "11", pods.Position(), "the watch continues from its position")
	require.Equal(t, "v1 abc", pods.Schema())
	r.verify()

	r.reopen()
	pods = r.pods()
	require.Equal(t, []string{"v1 abc", "11"}, []string{pods.Schema(), pods.Position()})
}

func TestANewStreamBeginsUnderItsSchema(t *testing.T) {
	r := record(t, newDatabase(t))
	require.Equal(t, "v1 abc", r.stream(StreamSpec{Resource: "pods", Kind: "Pod", Schema: "v1 abc"}).Schema())
	r.reopen()
	require.Equal(t, "v1 abc", r.stream(StreamSpec{Resource: "pods", Kind: "Pod", Schema: "v1 def"}).Schema(), "the objects on record were compared under the first schema")
}
