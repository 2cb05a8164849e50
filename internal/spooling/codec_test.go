package spooling

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

var widgets = kube.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true}

// A spooled is a stream without a record. Its rules exclude nothing.
type spooled struct {
	resource kube.Resource
	record   *postgres.Stream
}

func (s *spooled) Name() string                { return s.resource.Name }
func (s *spooled) Resource() kube.Resource     { return s.resource }
func (s *spooled) Redaction() *redact.Resource { return nil }
func (s *spooled) Recorded() *postgres.Stream  { return s.record }
func (s *spooled) Decided() map[types.UID]bool { return map[types.UID]bool{} }
func (s *spooled) Remembers(string) bool       { return false }

// spooledWidgets returns a stream, and a codec that knows it.
func spooledWidgets(t testing.TB) (Stream, Codec) {
	t.Helper()
	s := &spooled{resource: widgets, record: &postgres.Stream{}}
	return s, Codec{Stream: func(r kube.Resource) (Stream, error) {
		require.Equal(t, widgets, r, "a record names a stream by its resource")
		return s, nil
	}}
}

// widget returns an object as the queue holds it.
func widget(t testing.TB, rv string) *kube.Object {
	t.Helper()
	o, err := kube.Restore([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"a":"b"},"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-03-01T03:00:00Z"}],"name":"w","namespace":"n","resourceVersion":"` + rv + `","uid":"u"},"spec":{"x":1}}`))
	require.NoError(t, err)
	return o
}

func entries(t testing.TB, s Stream) map[string]deltafifo.Entry {
	t.Helper()
	seen := time.Date(2026, 3, 1, 3, 0, 0, 123000, time.UTC)
	return map[string]deltafifo.Entry{
		"delta":    {Stream: s, Delta: cache.Delta{Type: delta.Updated, Object: widget(t, "7")}, Source: delta.SourceWatch, Observed: seen, Position: "7", Bytes: 900},
		"bookmark": {Stream: s, Observed: seen, Position: "9", Bytes: 256},
		"passed": {Stream: s, Source: delta.SourceWatch, Observed: seen, Position: "9", Bytes: 256, Attached: []postgres.Item{
			{Kind: postgres.Excluded, UID: "x", Key: "n/x"}, {Kind: postgres.Unexcluded, UID: "y"}}},
		"marker": {Stream: s, Observed: seen, Position: "9", Bytes: 256, Marker: &delta.Marker{
			Kind: delta.Replaced, Cause: "expired", Detail: "why", FromRV: "1", FromTime: seen, ToRV: "9", Appeared: 1, Changed: 2, Vanished: 3, Unchanged: 4}},
		"beside": {Stream: s, Observed: seen, Bytes: 512, Marker: &delta.Marker{Kind: delta.Interrupted, Cause: "history_reversed", Detail: "why", FromRV: "1", FromTime: seen},
			Others: []deltafifo.OtherStream{{Stream: s, FromRV: "2", FromTime: seen}}},
		"keyframe": {Stream: s, Delta: cache.Delta{Type: delta.Sync, Object: keyframe{widget(t, "7")}}, Source: delta.SourceResync, Observed: seen, Bytes: 900},
		"gone": {Stream: s, Observed: seen, ListRV: "9", Source: delta.SourceInferred, Bytes: 700,
			Delta: cache.Delta{Type: delta.Deleted, Object: cache.DeletedFinalStateUnknown{Key: "n/w", Obj: &entryGone{Key: "n/w", UID: "u"}}}},
	}
}

func TestAnEntryComesBackFromItsRecordAsItWas(t *testing.T) {
	s, c := spooledWidgets(t)
	for name, e := range entries(t, s) {
		record, err := c.AppendEntry([]byte(nil), &e)
		require.NoError(t, err, name)
		got, err := c.DecodeEntry(record)
		require.NoError(t, err, name)
		require.Equal(t, e, got, name)
		for cut := range record {
			if got, err := c.DecodeEntry(record[:cut]); err == nil {
				require.NotEqual(t, e, got, "%s, cut after %d bytes", name, cut)
			}
		}
	}
}

// If the record counted as a database that cannot be reached, no recorder could ever start.
func TestARecordWithoutAnEntryIsReportedAsDamaged(t *testing.T) {
	s, c := spooledWidgets(t)
	e := entries(t, s)["delta"]
	record, err := c.AppendEntry(nil, &e)
	require.NoError(t, err)
	object := bytes.Index(record, []byte(`{"apiVersion"`))
	for name, damaged := range map[string][]byte{
		"nothing":         nil,
		"half a head":     record[:object/2],
		"no object":       record[:object],
		"half an object":  record[:object+10],
		"another content": append(record[:object:object], `["no object"]`...),
	} {
		_, err := c.DecodeEntry(damaged)
		require.ErrorIs(t, err, deltafifo.ErrRecord, name)
		_, err = deltafifo.ReadRecord(c, append([]byte{1, 0}, damaged...))
		require.ErrorIs(t, err, deltafifo.ErrRecord, name)
	}
	_, err = deltafifo.ReadRecord(c, []byte{1})
	require.ErrorIs(t, err, deltafifo.ErrRecord)
}

func TestAHiddenValueReachesNoRecord(t *testing.T) {
	redactor, err := redact.New(redact.Key{}, redact.Hash, nil)
	require.NoError(t, err)
	secrets := kube.Resource{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true}
	o := &kube.Object{JSON: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"p\":\"aHVudGVyMg==\"}}"}},"data":{"p":"aHVudGVyMg=="}}`)}
	hidden, err := canonical.Transformer(redactor.For(secrets.GroupResource()))(o)
	require.NoError(t, err)
	s := &spooled{resource: secrets, record: &postgres.Stream{}}
	record, err := Codec{}.AppendEntry(nil, &deltafifo.Entry{Stream: s, Delta: cache.Delta{Type: delta.Added, Object: hidden}})
	require.NoError(t, err)
	require.NotContains(t, string(record), "aHVudGVyMg==")
	require.NotContains(t, string(record), "hunter2")
}

// For any record, the codec returns an entry or an error.
func FuzzEntry(f *testing.F) {
	s, c := spooledWidgets(f)
	for _, e := range entries(f, s) {
		record, err := c.AppendEntry(nil, &e)
		require.NoError(f, err)
		f.Add(record)
	}
	c.Stream = func(kube.Resource) (Stream, error) { return s, nil }
	f.Fuzz(func(t *testing.T, record []byte) {
		e, err := c.DecodeEntry(record)
		if err != nil {
			return
		}
		_, err = c.AppendEntry(nil, &e)
		require.NoError(t, err)
	})
}
