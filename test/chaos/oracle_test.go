package chaos_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/patch"
)

// oraclePoll is how often the oracle reads what is new in etcd: far more often than anything is compacted.
const oraclePoll = 200 * time.Millisecond

// The oracle knows the record of a recorder that misses nothing. It reads etcd itself, before that is compacted, and shares no
// code with the recorder but the canonical form of JSON.
type oracle struct {
	etcd *controlplane.Etcd

	mu          sync.Mutex // protects what follows
	generation  int        // how often the history has gone backwards
	read        int64      // up to which revision, in this generation
	upToDate    time.Time  // when there was nothing after that
	compacted   int64
	looked      time.Time // when etcd was last asked how far it is compacted, and answered
	compactions []compaction
	news        []*write // since take
}

// compaction is since when a revision may have been the oldest one.
type compaction struct {
	since    time.Time
	revision int64
}

// object names what a write of etcd was about.
type object struct{ resource, namespace, name string }

// write is one write of an object in etcd.
type write struct {
	object
	generation int
	revision   int64
	kind       string    // Added, Updated, Deleted
	after      time.Time // when etcd did not have it yet, at most a moment before
	// version is the API version in which it is stored: only in that one it is served as it is stored.
	version string
	digest  [16]byte
	// replaced is the digest of the object of another UID whose place an update has taken. An API server that runs on over a
	// restore of its etcd updates the object in its cache. If both histories have a version of the name at one revision,
	// nothing stops it. A watch shows that as any update. Lists at exact revisions show an end and a beginning.
	replaced *[16]byte
}

// newOracle knows everything after the current revision.
func newOracle(t *testing.T, etcd *controlplane.Etcd) *oracle {
	t.Helper()
	o := &oracle{etcd: etcd}
	var err error
	o.read, err = etcd.Revision(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(oraclePoll)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = o.catchUp(ctx) // etcd may be down: then there is nothing new
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return o
}

// catchUp reads up to the current revision and returns it.
func (o *oracle) catchUp(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.catchUpLocked(ctx)
}

// goBack restores an older history while nobody writes.
func (o *oracle) goBack(ctx context.Context, restore func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.catchUpLocked(ctx); err != nil {
		return err
	}
	if err := restore(); err != nil {
		return err
	}
	var err error
	o.generation++
	o.compacted, o.upToDate = 0, time.Now() // From now on it has what it was put back to.
	o.compactions = append(o.compactions, compaction{time.Now(), 0})
	o.read, err = o.etcd.Revision(ctx)
	return err
}

func (o *oracle) catchUpLocked(ctx context.Context) (int64, error) {
	asked := time.Now()
	current, err := o.etcd.Revision(ctx)
	if err != nil {
		return 0, err
	}
	err = o.etcd.EachRevision(ctx, o.read+1, current, func(r controlplane.Revision) error {
		w, err := o.parse(r)
		if w != nil {
			o.news = append(o.news, w)
		}
		o.read = max(o.read, r.Rev-1) // several writes can share one revision
		return err
	})
	if err != nil {
		o.dropUnfinished()
		return 0, err
	}
	o.read, o.upToDate = current, asked
	looks := time.Now()
	compacted, err := o.etcd.Compacted(ctx, o.compacted)
	if err != nil {
		return current, err
	}
	if compacted != o.compacted {
		o.compacted = compacted
		o.compactions = append(o.compactions, compaction{o.looked, compacted})
	}
	o.looked = looks
	return current, nil
}

// dropUnfinished forgets writes of revisions that will be read again.
func (o *oracle) dropUnfinished() {
	for len(o.news) > 0 {
		last := o.news[len(o.news)-1]
		if last.generation != o.generation || last.revision <= o.read {
			return
		}
		o.news = o.news[:len(o.news)-1]
	}
}

// take gives what has been written since it was last asked.
func (o *oracle) take() []*write {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := o.news
	o.news = nil
	return news
}

// forgotten says whether etcd had compacted what followed a revision at that time.
func (o *oracle) forgotten(revision int64, at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range slices.Backward(o.compactions) {
		if c.since.Before(at) {
			return c.revision > revision
		}
	}
	return false
}

// notObjects are keys of the API server's own book-keeping, which it serves to nobody.
var notObjects = []string{"/registry/ranges/", "/registry/masterleases/", "/registry/peerserverleases/"}

// elsewhere are the resources that etcd keeps under another name.
var elsewhere = strings.NewReplacer("/registry/minions/", "/registry/nodes/", "/registry/services/specs/", "/registry/services/",
	"/registry/services/endpoints/", "/registry/endpoints/", "/registry/ingress/", "/registry/ingresses/", "/registry/controllers/", "/registry/replicationcontrollers/")

var deltaTypes = map[controlplane.RevisionKind]string{
	controlplane.Create: "Added", controlplane.Update: "Updated", controlplane.Delete: "Deleted",
}

// parse is nil for what is no object.
func (o *oracle) parse(r controlplane.Revision) (*write, error) {
	for _, prefix := range notObjects {
		if strings.HasPrefix(r.Key, prefix) {
			return nil, nil
		}
	}
	parts := strings.Split(elsewhere.Replace(r.Key), "/")[2:]
	if strings.Contains(parts[0], ".") { // the group stands before the resource
		parts = parts[1:]
	}
	w := &write{generation: o.generation, revision: r.Rev, kind: deltaTypes[r.Kind], after: o.upToDate}
	switch len(parts) {
	case 2:
		w.object = object{parts[0], "", parts[1]}
	case 3:
		w.object = object{parts[0], parts[1], parts[2]}
	default:
		return nil, fmt.Errorf("the key %s is of an unknown form", r.Key)
	}
	value := r.Value
	if r.Kind == controlplane.Delete {
		value = r.Previous
	}
	var err error
	if w.version, w.digest, err = digestOf(value, r.Rev); err != nil || r.Kind != controlplane.Update {
		return w, err
	}
	was, err := uidOf(r.Previous)
	if err != nil {
		return nil, err
	}
	is, err := uidOf(r.Value)
	if err != nil || was == is {
		return w, err
	}
	_, digest, err := digestOf(r.Previous, r.Rev)
	w.replaced = &digest
	return w, err
}

func uidOf(stored []byte) (string, error) {
	var doc struct {
		Metadata struct{ UID string }
	}
	err := json.Unmarshal(stored, &doc)
	return doc.Metadata.UID, err
}

// digestOf is the digest of an object as it is served, by what is stored: without its resource version, which is the revision.
func digestOf(stored []byte, revision int64) (version string, digest [16]byte, err error) {
	var doc map[string]json.RawMessage
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(stored, &doc); err != nil {
		return "", digest, err
	}
	err = errors.Join(json.Unmarshal(doc["apiVersion"], &version), json.Unmarshal(doc["metadata"], &metadata))
	if err != nil {
		return "", digest, err
	}
	metadata["resourceVersion"] = json.RawMessage(strconv.Quote(strconv.FormatInt(revision, 10)))
	doc["metadata"], err = json.Marshal(metadata)
	if err != nil {
		return "", digest, err
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return "", digest, err
	}
	canonical, err := patch.Canonical(text)
	sum := sha256.Sum256(canonical)
	return version, [16]byte(sum[:16]), err
}
