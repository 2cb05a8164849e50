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

// oraclePoll is the interval at which the oracle reads etcd. It is far shorter than the interval of compaction.
const oraclePoll = 200 * time.Millisecond

// The oracle knows all that a recorder has to record. It reads etcd directly, before a compaction. The only code that it shares
// with the recorder is the canonical form of JSON.
type oracle struct {
	etcd *controlplane.Etcd

	mu          sync.Mutex // protects what follows
	generation  int        // the number of restores
	forks       []int64    // etcd's revision after each restore: writes of the old history up to it do not count as lost
	restores    []span     // when each restore began, and when the faults of its round were over
	read        int64      // the last revision that was read, of this generation
	upToDate    time.Time  // the last time at which etcd had nothing newer
	compacted   int64
	looked      time.Time // the last time at which etcd said how far it is compacted
	compactions []compaction
	news        []*write // writes since take was called
}

// compaction is the earliest time at which a revision may have been the oldest one in etcd.
type compaction struct {
	since    time.Time
	revision int64
}

// object names the object of a write.
type object struct{ resource, namespace, name string }

// write is one write of an object in etcd.
type write struct {
	object
	generation int
	revision   int64
	kind       string    // Added, Updated, Deleted
	after      time.Time // a time shortly before the write
	// version is the API version in which it is stored. Other versions are converted before they are served.
	version string
	digest  [16]byte
	// replaced is the digest of an object with another UID that this update has replaced. That happens if an API server keeps
	// running while its etcd is restored, and updates an object of its stale cache. If both histories have a version of the
	// name at the same revision, the update succeeds. A watch shows it as an update; lists show a deletion and a creation.
	replaced *[16]byte
}

// newOracle returns an oracle that reads everything after the current revision.
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
				_, _ = o.catchUp(ctx) // if etcd is down, there is nothing new
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

// goBack switches to the restored history. No writer may write meanwhile.
func (o *oracle) goBack(ctx context.Context, restore func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.catchUpLocked(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := restore(); err != nil {
		return err
	}
	var err error
	o.generation++
	o.compacted, o.upToDate = 0, time.Now() // From now on etcd has the restored history.
	o.compactions = append(o.compactions, compaction{time.Now(), 0})
	if o.read, err = o.etcd.Revision(ctx); err != nil {
		return err
	}
	o.forks = append(o.forks, o.read)
	o.restores = append(o.restores, span{since: began})
	return nil
}

// faultsOver notes that the faults of a round are over. From now on, no API server has caches of an earlier history.
func (o *oracle) faultsOver() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.restores) - 1; last >= 0 && o.restores[last].until.IsZero() {
		o.restores[last].until = time.Now()
	}
}

// restoredWithin reports whether etcd was put back within a time.
func (o *oracle) restoredWithin(from, to time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.restores, func(s span) bool {
		return s.since.Before(to) && (s.until.IsZero() || s.until.After(from))
	})
}

// lostAt reports whether a restore had undone a write of a history at that time.
func (o *oracle) lostAt(generation int, revision int64, at time.Time) bool {
	return o.lost(generation, revision) && o.restoreBegan(generation).Before(at)
}

// restoreBegan returns when the restore that ended a history began.
func (o *oracle) restoreBegan(generation int) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.restores[generation].since
}

// lost reports whether a restore has undone a write of a history.
func (o *oracle) lost(generation int, revision int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return generation < len(o.forks) && revision > o.forks[generation]
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

// dropUnfinished drops writes of revisions that the oracle will read again.
func (o *oracle) dropUnfinished() {
	for len(o.news) > 0 {
		last := o.news[len(o.news)-1]
		if last.generation != o.generation || last.revision <= o.read {
			return
		}
		o.news = o.news[:len(o.news)-1]
	}
}

// take returns the writes since the last call.
func (o *oracle) take() []*write {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := o.news
	o.news = nil
	return news
}

// forgotten reports whether etcd had compacted the writes after a revision at that time.
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

// notObjects are internal keys of the API server. It serves them to no client.
var notObjects = []string{"/registry/ranges/", "/registry/masterleases/", "/registry/peerserverleases/"}

// elsewhere are the resources that etcd keeps under another name.
var elsewhere = strings.NewReplacer("/registry/minions/", "/registry/nodes/", "/registry/services/specs/", "/registry/services/",
	"/registry/services/endpoints/", "/registry/endpoints/", "/registry/ingress/", "/registry/ingresses/", "/registry/controllers/", "/registry/replicationcontrollers/")

var deltaTypes = map[controlplane.RevisionKind]string{
	controlplane.Create: "Added", controlplane.Update: "Updated", controlplane.Delete: "Deleted",
}

// parse returns nil for a key that is no object.
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

// digestOf returns the digest of an object as it is served, from its stored form. It excludes the resource version, which is the revision.
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
