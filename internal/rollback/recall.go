package rollback

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Recalled is what a recorder before this one has left of a stream: on record, or in its spool.
type Recalled struct {
	// Position is up to where that is complete. Known is what lives, Newest are the newest revisions.
	Position string
	Known    *postgres.Known
	Newest   []string
	// Unverified are the versions that were served last. That recorder may not have compared them with etcd.
	Unverified []postgres.Version
	// Reversals are the rollbacks on record that the stream may not have been told of.
	Reversals []postgres.Reversal
	// Anew says that the stream has left the history on record, and was listed since up to Position.
	Relisted bool
	// Left says that the history on record was found to be no more, and that recorder ended before the stream was listed.
	RolledBack bool
	// Spooled is up to where that recorder has spooled a stream that has left.
	Spooled string
}

// Recall takes over what a recorder before this one has left.
func (c *Stream) Recall(r Recalled) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if r.Relisted {
		c.samples.pending, c.history.unmatched = sampleSet{}, nil
	}
	if at, err := strconv.ParseUint(r.Position, 10, 64); err == nil {
		resumeLocked(c, at, r)
	}
	for _, e := range r.Reversals {
		c.history.unmatched = append(c.history.unmatched, pastRollback{proof: e.Proof, record: e})
	}
	for _, v := range r.Unverified {
		if revision, err := strconv.ParseUint(v.ResourceVersion, 10, 64); err == nil {
			version := servedVersion{revision: revision, namespace: v.Namespace, name: v.Name, uid: types.UID(v.UID)}
			c.samples.pending.kept = append(c.samples.pending.kept, &sample{observation: observation{stream: c, servedVersion: version, recordTime: v.Observed, history: c.history.number}, recalled: true, pending: true})
		}
	}
	if r.RolledBack {
		recallRollbackLocked(c, r.Spooled)
	}
}

// resumeLocked takes over from a position on record.
func resumeLocked(c *Stream, at uint64, r Recalled) {
	c.history.unmatched = append(c.history.unmatched, c.all.rollbacks...)
	since := c.all.now()
	if !c.all.verified.IsZero() {
		since = c.all.verified
	}
	c.progress.resume(at, since)
	for _, rv := range r.Newest {
		if revision, err := strconv.ParseUint(rv, 10, 64); err == nil {
			c.progress.recall(revision)
			c.claims.add(revision)
		}
	}
	for _, version := range livingOnRecord(r.Known) {
		c.progress.recall(version.revision)
		c.living.remember(version, false)
	}
	c.samples.addPendingLocked(recalledSampleLocked(c))
}

// livingOn are the versions of the objects that live on record.
func livingOnRecord(known *postgres.Known) (versions []servedVersion) {
	if known == nil {
		return nil
	}
	for _, key := range known.ListKeys() {
		object, ok, _ := known.GetByKey(key)
		if !ok {
			continue
		}
		o := object.(postgres.KnownObject)
		if revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err == nil {
			versions = append(versions, servedVersion{revision: revision, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID(), doc: o.Doc})
		}
	}
	return versions
}

// recalledSampleLocked is the newest living object on record. When it was served is not known.
func recalledSampleLocked(c *Stream) *sample {
	return &sample{observation: observation{stream: c, servedVersion: c.living.newest(), history: c.history.number}, listed: c.progress.position, recalled: true}
}

// hadLeftLocked notes that the recalled history is no more. The rollback is known. Streams that were listed since would find it
// a second time. What was spooled of the stream may go further than what is on record.
func recallRollbackLocked(c *Stream, spooled string) {
	if revision, err := strconv.ParseUint(spooled, 10, 64); err == nil {
		c.progress.position = max(c.progress.position, revision)
	}
	c.history.rolledBack, c.history.proof, c.history.unmatched = true, "it had gone backwards before", nil
	c.trust.cacheCheck = recalledCacheCheck(c.progress.newestKnown())
	c.claims, c.progress.position, c.living, c.samples = claims{}, 0, nil, streamSamples{}
}
