package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/verify"
)

// noon is the time at which the tests begin.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// An object is a version of an object that a server could serve.
type object struct {
	namespace, name string
	uid             types.UID
	rv              string
	doc             patch.Doc
}

func (o *object) GetNamespace() string       { return o.namespace }
func (o *object) GetName() string            { return o.name }
func (o *object) GetUID() types.UID          { return o.uid }
func (o *object) GetResourceVersion() string { return o.rv }
func (o *object) Doc() patch.Doc             { return o.doc }

// made returns a version whose spec is the JSON text.
func made(t testing.TB, namespace, name, uid, rv, spec string) *object {
	t.Helper()
	metadata := map[string]string{"name": name}
	for key, value := range map[string]string{"namespace": namespace, "uid": uid, "resourceVersion": rv} {
		if value != "" {
			metadata[key] = value
		}
	}
	meta, err := json.Marshal(metadata)
	require.NoError(t, err)
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Thing","metadata":%s,"spec":%s}`, meta, spec))
	require.NoError(t, err)
	return &object{namespace: namespace, name: name, uid: types.UID(uid), rv: rv, doc: doc}
}

// managed returns the object with these entries in managedFields.
func (o *object) managed(t testing.TB, entries string) *object {
	t.Helper()
	const metadata = `"metadata":{`
	doc, err := patch.Canonical([]byte(strings.Replace(string(o.doc), metadata, metadata+`"managedFields":[`+entries+`],`, 1)))
	require.NoError(t, err)
	o.doc = doc
	return o
}

var uids atomic.Int64

func newUID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uids.Add(1), uids.Add(1))
}

// A recording is a sink under test, with its clock.
type recording struct {
	t    testing.TB
	db   *database
	cfg  Config
	sink *Sink
	now  time.Time
}

// record opens a sink for a cluster of its own.
func record(t testing.TB, db *database, change ...func(*Config)) *recording {
	t.Helper()
	r := &recording{t: t, db: db, now: noon}
	uid := newUID()
	r.cfg = Config{
		URL: db.url, ClusterUID: uid, ClusterName: "cluster-" + uid, KeyFingerprint: []byte{1, 2, 3}, Recorder: "test", Version: "v0",
		ConfigJSON: []byte(`{"include":["*"]}`), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.now },
	}
	for _, c := range change {
		c(&r.cfg)
	}
	r.open()
	t.Cleanup(func() { r.sink.Close() })
	return r
}

func (r *recording) open() {
	r.t.Helper()
	s, err := Open(context.Background(), r.cfg)
	require.NoError(r.t, err)
	r.sink = s
	require.NoError(r.t, r.sink.RecordPause(context.Background(), time.Time{}))
}

// reopen opens the record as a new recorder.
func (r *recording) reopen() {
	r.t.Helper()
	r.sink.Close()
	r.open()
}

func (r *recording) stream(spec StreamSpec) *Stream {
	r.t.Helper()
	if spec.Version == "" {
		spec.Version = "v1"
	}
	st, err := r.sink.Stream(context.Background(), spec)
	require.NoError(r.t, err)
	return st
}

func (r *recording) pods() *Stream {
	r.t.Helper()
	return r.stream(StreamSpec{Resource: "pods", Kind: "Pod", Namespaced: true})
}

// encode makes a batch of items, which are observed now.
func (r *recording) encode(items ...Item) *Batch {
	r.t.Helper()
	for i := range items {
		if items[i].Observed.IsZero() {
			items[i].Observed = r.now
		}
		if items[i].Version == "" {
			items[i].Version = "v1"
		}
	}
	b, err := r.sink.Encode(items)
	require.NoError(r.t, err)
	return b
}

func (r *recording) commit(items ...Item) {
	r.t.Helper()
	require.NoError(r.t, r.sink.Commit(context.Background(), r.encode(items...)))
}

func (r *recording) cluster() int32 { return r.sink.Info().Cluster }

// verify checks the chain.
func (r *recording) verify() verify.ChainReport {
	r.t.Helper()
	report, err := verify.Chain(context.Background(), r.db.admin, r.cfg.ClusterName)
	require.NoError(r.t, err)
	require.Empty(r.t, report.Breaks)
	require.Zero(r.t, one[int](r.t, r.db, `
		SELECT count(*) FROM kuberewind.living a FULL JOIN (SELECT * FROM kuberewind.record_lives WHERE deleted_seq IS NULL) l USING (cluster, stream, object_id)
		WHERE a.object_id IS NULL OR l.object_id IS NULL`), "what has not ended lives")
	return report
}

// watched returns an event of the watch.
func watched(st *Stream, kind delta.Type, o *object) Item {
	return Item{Stream: st.ID(), Kind: Delta, Type: kind, Source: delta.SourceWatch, Object: o, Position: o.rv}
}

// listed returns an item of a list.
func listed(st *Stream, source delta.Source, o *object) Item {
	return Item{Stream: st.ID(), Kind: Delta, Type: delta.Sync, Source: source, Object: o}
}

// gone returns the inferred delete of an object that a list no longer has.
func gone(st *Stream, o *object, rv string) Item {
	return Item{Stream: st.ID(), Kind: Delta, Type: delta.Deleted, Source: delta.SourceInferred, Key: joinKey(o.namespace, o.name), UID: o.uid, RV: rv}
}

func bookmark(st *Stream, rv string) Item {
	return Item{Stream: st.ID(), Kind: Position, Position: rv}
}

// replacedBy returns the end of a list.
func replacedBy(st *Stream, cause delta.Cause, rv string) Item {
	return Item{Stream: st.ID(), Kind: Marked, Position: rv, Marker: delta.Marker{Kind: delta.Replaced, Cause: cause, ToRV: rv}}
}

// A recorded is a row of deltas_data, folded: Doc is the version after it.
type recorded struct {
	Seq, ObjectID    int64
	Stream           int32
	Type, Source     int16
	RV               string
	Observed         time.Time
	Doc              patch.Doc
	HasPatch, HasObj bool
	Deleted          bool
}

// history folds all deltas of a cluster by the documented rules, without the code that writes them, and checks digests.
func (r *recording) history() []recorded {
	r.t.Helper()
	rows, err := r.db.admin.Query(context.Background(), `
		SELECT seq, object_id, stream, type, source, rv, observed_at, digest, patch::text, object::text, exact
		FROM kuberewind.deltas_data WHERE cluster = $1 ORDER BY seq`, r.cluster())
	require.NoError(r.t, err)
	defer rows.Close()
	docs := make(map[int64]patch.Doc)
	var history []recorded
	for rows.Next() {
		var d recorded
		var digest, change, whole, exact []byte
		require.NoError(r.t, rows.Scan(&d.Seq, &d.ObjectID, &d.Stream, &d.Type, &d.Source, &d.RV, &d.Observed, &digest, &change, &whole, &exact))
		d.HasPatch, d.HasObj, d.Deleted = change != nil, whole != nil, d.Type == delta.NumberDeleted
		d.Doc = foldRow(r.t, docs[d.ObjectID], d.RV, change, whole, exact)
		sum := patch.Digest(d.Doc)
		require.Equal(r.t, sum[:], digest, "digest of seq %d", d.Seq)
		require.Equal(r.t, int64(len(history)+1), d.Seq, "seq is gapless")
		docs[d.ObjectID] = d.Doc
		history = append(history, d)
	}
	require.NoError(r.t, rows.Err())
	return history
}

// foldRow also checks that a patch gives the same version as the keyframe in its row, if neither was altered for SQL.
func foldRow(t testing.TB, before patch.Doc, rv string, change, whole, exact []byte) patch.Doc {
	t.Helper()
	var patched, stored patch.Doc
	var err error
	if change != nil {
		base, setErr := patch.Set(before, "/metadata/resourceVersion", patch.Doc(`"`+rv+`"`))
		if setErr != nil {
			base = before
		}
		patched, err = patch.Apply(base, change)
		require.NoError(t, err)
	}
	if whole == nil && change == nil {
		return before
	}
	if whole == nil {
		return patched
	}
	if exact != nil {
		stored, err = patch.Canonical(exact)
	} else {
		stored, err = patch.Canonical(whole)
	}
	require.NoError(t, err)
	return stored
}

// noise returns n letters that do not compress.
func noise(n int) string {
	text := make([]byte, n)
	state := uint32(1)
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = 'a' + byte(state>>27)%26
	}
	return string(text)
}

func containsAny(s string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
