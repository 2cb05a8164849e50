package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

// lines returns the evidence of the rows, by seq.
func (r *recording) lines() string {
	r.t.Helper()
	return one[string](r.t, r.db, `
		SELECT string_agg(concat_ws(' ', seq, coalesce(manager, '-'), subresource, manager_evidence, manager_hint), E'\n' ORDER BY seq) FROM kuberewind.deltas WHERE cluster = $1`,
		r.cfg.ClusterName)
}

func TestARowNamesAManagerOnlyIfTheVersionProvesIt(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	uid, rv := newUID(), 10
	version := func(spec, entries string) *object {
		rv++
		return made(t, "default", "web", uid, fmt.Sprint(rv), spec).managed(t, entries)
	}
	entry := func(name string, second int, fields string) string {
		written := noon.Add(time.Duration(second) * time.Second).Format(time.RFC3339)
		return fmt.Sprintf(`{"manager":%q,"time":%q,"fieldsV1":{"f:spec":%s}}`, name, written, fields)
	}
	a, b := entry("a", 0, `{"f:n":{}}`), entry("b", 1, `{"f:m":{}}`)

	r.commit(replacedBy(pods, delta.CauseFirstList, "10"), watched(pods, delta.Added, version(`{"n":1}`, a)), watched(pods, delta.Updated, version(`{"n":1,"m":1}`, a+","+b)))
	r.commit(watched(pods, delta.Updated, version(`{"n":1}`, a)))
	r.commit(Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "disconnected"}}, watched(pods, delta.Updated, version(`{"n":2}`, entry("a", 3, `{"f:n":{}}`))))
	r.commit(listed(pods, delta.SourceRelist, version(`{"n":3}`, entry("a", 4, `{"f:n":{}}`))), replacedBy(pods, "disconnected", fmt.Sprint(rv)))
	r.commit(watched(pods, delta.Updated, version(`{"n":4}`, entry("a", 5, `{"f:n":{}}`))))
	last := version(`{"n":4}`, entry("a", 6, `{"f:n":{}}`))
	r.commit(watched(pods, delta.Deleted, last))
	require.Equal(t, "1 a entry\n2 b entry\n3 - none b\n4 - none\n5 - none\n6 a entry\n7 - none", r.lines())
	r.verify()
}
