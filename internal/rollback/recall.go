package rollback

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Recalled is what an earlier recorder has recorded or spooled of a stream.
type Recalled struct {
	// Position is up to where the stream is complete. Known are the living objects, Newest the newest revisions.
	Position string
	Known    *postgres.Known
	Newest   []string
	// Begun says that this process begins the stream, at Position: no earlier recorder has followed it.
	Begun bool
	// Unverified are the versions that the server served last. The earlier recorder may not have checked them in
	// etcd.
	Unverified []postgres.Version
	// PastRollbacks are the rollbacks on record for which the stream may not have been rolled back.
	PastRollbacks []postgres.Reversal
	// Relisted says that the stream was rolled back, and was listed after that, up to Position.
	Relisted bool
	// RolledBack says that the history on record is no more, and that the earlier recorder ended before it had
	// listed the stream.
	RolledBack bool
	// SpooledRevisions are the newest revisions of the stream in the spool.
	SpooledRevisions []string
	// Spooled is how far the earlier recorder has spooled a rolled back stream.
	Spooled string
}

// Recall takes over what an earlier recorder has recorded or spooled.
func (c *Stream) Recall(r Recalled) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if r.Relisted {
		c.samples.pending, c.history.unmatched = sampleSet{}, nil
	}
	if at, err := strconv.ParseUint(r.Position, 10, 64); err == nil {
		resumeLocked(c, at, r)
	}
	for _, e := range r.PastRollbacks {
		c.history.unmatched = append(c.history.unmatched, pastRollback{proof: e.Proof, onRecord: e})
	}
	for _, v := range r.Unverified {
		if revision, err := strconv.ParseUint(v.ResourceVersion, 10, 64); err == nil {
			version := servedVersion{revision: revision, namespace: v.Namespace, name: v.Name, uid: types.UID(v.UID)}
			c.samples.pending.kept = append(c.samples.pending.kept, &sample{observation: observation{stream: c, servedVersion: version, recordTime: v.Observed, historyNumber: c.history.number}, recalled: true, pending: true})
		}
	}
	if r.RolledBack {
		recallRollbackLocked(c, r.Spooled)
	}
}

// resumeLocked takes over a position on record.
func resumeLocked(c *Stream, position uint64, r Recalled) {
	c.history.unmatched = append(c.history.unmatched, c.all.rollbacks...)
	beganAt := c.all.now()
	if !c.all.verifiedUntil.IsZero() {
		beganAt = c.all.verifiedUntil
	}
	c.progress.resume(position, !r.Begun, beganAt)
	for _, rv := range r.Newest {
		if revision, err := strconv.ParseUint(rv, 10, 64); err == nil {
			c.progress.recall(revision)
			c.claims.add(revision)
		}
	}
	for _, rv := range r.SpooledRevisions {
		if revision, err := strconv.ParseUint(rv, 10, 64); err == nil {
			c.claims.add(revision)
		}
	}
	for _, version := range livingOnRecord(r.Known) {
		c.progress.recall(version.revision)
		c.living.remember(version, false)
	}
	c.samples.addPendingLocked(recalledSampleLocked(c))
}

// livingOnRecord returns the versions of the living objects on record.
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

// recalledSampleLocked returns a sample of the newest living object on record. When it was served is not known.
func recalledSampleLocked(c *Stream) *sample {
	return &sample{observation: observation{stream: c, servedVersion: c.living.newest(), historyNumber: c.history.number}, listedRevision: c.progress.position, recalled: true}
}

// recallRollbackLocked notes that the recalled history is no more. The rollback is known, so streams that were
// listed since must not find it a second time. The spool of the stream may go further than the record.
func recallRollbackLocked(c *Stream, spooled string) {
	if revision, err := strconv.ParseUint(spooled, 10, 64); err == nil {
		c.progress.position = max(c.progress.position, revision)
	}
	c.history.rolledBack, c.history.proof, c.history.unmatched = true, "it had gone backwards before", nil
	c.trust.cacheCheck = recalledCacheCheck(c.progress.newestKnown())
	c.forgetLocked()
}
