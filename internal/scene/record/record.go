// Package record puts the committed recording of the scene into a database, as a recorder would.
//
// # What it guarantees
//
//   - Each object takes the path of a recorder: canonical text, redaction, and the sink. observed_at is the time of the
//     server's watch event.
//   - Two calls make the same deltas with the same seqs, and hash Secrets with the same key.
//
// It does not run the reflector and the queue, because these date events by their own clock, and ten minutes would
// become two seconds. To run the whole recorder on the recording, serve it with bench/serve.
package record

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Cluster is the name of the cluster in the record.
const Cluster = "scene"

//go:embed testdata/scene.zst
var recording []byte

//go:embed testdata/served.zst
var served []byte

// Audit is the API server's audit log of the recording, compressed with zstd: an event of audit.k8s.io/v1 a line, bodies included.
//
// Audit is the API server's audit log of the recording, compressed with zstd. Each line is an event of audit.k8s.io/v1,
// with bodies.
//
//go:embed testdata/audit.zst
var Audit []byte

// setFile holds the events of the lists and the watches.
const setFile = "scene.zst"

// Set returns the recording. The folder must exist while the caller reads it.
func Set(dir string) (data.Set, error) {
	path := filepath.Join(dir, setFile)
	if err := os.WriteFile(path, recording, 0o600); err != nil {
		return nil, err
	}
	return data.Open(path)
}

// Into puts the recording into a database that holds an empty record.
func Into(ctx context.Context, url string) (err error) {
	dir, err := os.MkdirTemp("", "kuberewind-scene-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, servedFile), served, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, setFile), recording, 0o600); err != nil {
		return err
	}
	return FolderInto(ctx, url, dir)
}

// FolderInto is Into for the folder of another run of hack/scene.
func FolderInto(ctx context.Context, url, dir string) error {
	set, err := data.Open(filepath.Join(dir, setFile))
	if err != nil {
		return err
	}
	documents, err := readServed(dir)
	if err != nil {
		return err
	}
	return into(ctx, url, set, documents, nil)
}

// SetInto puts another Set into a database that holds an empty record, without server documents. It calls committed
// after each commit, with the time of its last event; committed may be nil.
func SetInto(ctx context.Context, url string, set data.Set, committed Committed) error {
	return into(ctx, url, set, nil, committed)
}

// Committed is called after a commit. Its error ends the recording.
type Committed func(ctx context.Context, at time.Time) error

func into(ctx context.Context, url string, set data.Set, documents []Document, committed Committed) error {
	file, err := key()
	if err != nil {
		return err
	}
	w, err := newWriter(ctx, url, set, file)
	if err != nil {
		return err
	}
	defer w.sink.Close()
	w.documents, w.committed = documents, committed
	return w.record(ctx)
}

// key returns the same key each time.
func key() (k redact.FileKey, err error) {
	dir, err := os.MkdirTemp("", "kuberewind-scene-")
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "key")
	if err := os.WriteFile(path, []byte(strings.Repeat("5ce9e000", 8)+"\n"), 0o600); err != nil {
		return k, err
	}
	return redact.LoadKey(path)
}

// A writer records a Set.
type writer struct {
	set       data.Set
	sink      *postgres.Sink
	now       time.Time
	streams   []stream
	documents []Document // not yet recorded
	waiting   []postgres.Item

	committed Committed
}

// A stream is one followed resource.
type stream struct {
	id        int32
	version   string
	redaction *redact.Resource
}

func newWriter(ctx context.Context, url string, set data.Set, file redact.FileKey) (*writer, error) {
	w := &writer{set: set}
	uid := ""
	for e := range set.First() {
		w.now = e.At
		if r := set.Resources()[e.Resource]; r.Kind == "Namespace" && e.Name == "kube-system" {
			uid = e.UID
		}
	}
	key := file.Of(uid)
	redactor, err := redact.New(key, redact.Hash, nil)
	if err != nil {
		return nil, err
	}
	w.sink, err = postgres.Open(ctx, postgres.Config{
		URL: url, ClusterUID: uid, ClusterName: Cluster, KeyFingerprint: key.Fingerprint(), Recorder: "scene", Version: "scene",
		Now: func() time.Time { return w.now },
	})
	if err != nil {
		return nil, err
	}
	for _, r := range set.Resources() {
		st, err := w.sink.Stream(ctx, postgres.StreamSpec{Group: r.Group, Resource: r.Resource, Version: r.Version, Kind: r.Kind, Namespaced: r.Namespaced})
		if err != nil {
			w.sink.Close()
			return nil, err
		}
		w.streams = append(w.streams, stream{st.ID(), r.Version, redactor.For(schema.GroupResource{Group: r.Group, Resource: r.Resource})})
	}
	return w, nil
}

// record writes the first lists, and then the events of the watches.
func (w *writer) record(ctx context.Context) error {
	if err := w.recordServed(ctx, w.now); err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	types := map[watch.EventType]delta.Type{watch.Added: delta.Added, watch.Modified: delta.Updated, watch.Deleted: delta.Deleted}
	for e, err := range w.set.Events() {
		if err != nil {
			return err
		}
		if err := w.recordServed(ctx, e.At); err != nil {
			return err
		}
		if err := w.add(ctx, e, types[e.Type], delta.SourceWatch, strconv.FormatUint(e.RV, 10)); err != nil {
			return err
		}
	}
	return w.commit(ctx)
}

// recordServed records the server documents up to a time.
func (w *writer) recordServed(ctx context.Context, until time.Time) error {
	for len(w.documents) > 0 && !w.documents[0].At.After(until) {
		if err := w.commit(ctx); err != nil {
			return err
		}
		w.now = w.documents[0].At.Truncate(time.Microsecond)
		if err := w.sink.RecordServer(ctx, w.documents[0].Path, w.documents[0].Content); err != nil {
			return err
		}
		w.documents = w.documents[1:]
	}
	return nil
}

func (w *writer) begin(ctx context.Context) error {
	newest := uint64(0)
	for e := range w.set.First() {
		newest = max(newest, e.RV)
		if err := w.add(ctx, e, delta.Sync, delta.SourceList, ""); err != nil {
			return err
		}
	}
	at := strconv.FormatUint(newest, 10)
	for _, s := range w.streams {
		w.waiting = append(w.waiting, postgres.Item{
			Stream: s.id, Kind: postgres.Marked, Observed: w.now, Position: at, Marker: delta.Marker{Kind: delta.Replaced, Cause: delta.CauseFirstList, ToRV: at},
		})
	}
	return w.commit(ctx)
}

// batch is how many rows one transaction takes. It is small, so that seqs and batches look like those of a live
// recorder.
const batch = 200

func (w *writer) add(ctx context.Context, e data.Event, kind delta.Type, source delta.Source, position string) error {
	s := w.streams[e.Resource]
	object, err := s.object(e)
	if err != nil {
		return fmt.Errorf("%s/%s at resource version %d: %w", e.Namespace, e.Name, e.RV, err)
	}
	w.now = e.At.Truncate(time.Microsecond)
	item := postgres.Item{
		Stream: s.id, Kind: postgres.Delta, Type: kind, Source: source, Observed: w.now, Object: object, Version: s.version, Position: position,
	}
	if evidence, ok := object.EvidenceTime(); ok && source == delta.SourceList {
		item.Occurred = evidence
	}
	if w.waiting = append(w.waiting, item); len(w.waiting) < batch {
		return nil
	}
	return w.commit(ctx)
}

// object brings a served object into the form in which it is recorded.
func (s stream) object(e data.Event) (*kube.Object, error) {
	doc, err := patch.Canonical(e.Object)
	if err != nil {
		return nil, err
	}
	if s.redaction != nil {
		if doc, err = s.redaction.Apply(doc, e.Namespace, e.Name); err != nil {
			return nil, err
		}
	}
	return kube.Restore(doc)
}

func (w *writer) commit(ctx context.Context) error {
	if len(w.waiting) == 0 {
		return nil
	}
	encoded, err := w.sink.Encode(w.waiting)
	if err != nil {
		return err
	}
	w.waiting = nil
	if err := w.sink.Commit(ctx, encoded); err != nil || w.committed == nil {
		return err
	}
	return w.committed(ctx, w.now)
}
