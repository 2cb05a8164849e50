package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/kuberewind/kuberewind/delta"
)

// A row of deltas_data. Times are in microseconds since 1970; texts have been through clean.
type row struct {
	seq, objectID      int64
	observed, occurred int64
	stream             int32
	kind, source       int16
	evidence           int16 // of the manager, 0 is NULL
	rv, version        string
	manager            string // "" is NULL
	hint               string // of a manager, "" is NULL
	subresource        string // "" is NULL
	digest             [16]byte
	patch              []byte // nil is NULL
	object             []byte // nil is NULL
	exact              []byte // nil is NULL
}

const deltaColumns = "cluster, stream, seq, object_id, observed_at, occurred_at, type, source, manager_evidence, rv, version, manager, manager_hint, subresource, digest, patch, object, exact"

func (r *row) copyTo(c *copyBuffer, cluster int32) {
	c.fields(18)
	c.int4(cluster)
	c.int4(r.stream)
	c.int8(r.seq)
	c.int8(r.objectID)
	c.time(r.observed)
	c.time(r.occurred)
	c.int2(r.kind)
	c.int2(r.source)
	c.code(r.evidence)
	c.text(r.rv)
	c.text(r.version)
	c.name(r.manager)
	c.name(r.hint)
	c.name(r.subresource)
	c.bytes(r.digest[:])
	c.jsonb(r.patch)
	c.bytes(r.object)
	c.bytes(r.exact)
}

// maxName is what lives holds of a name, in bytes: an entry of an index takes at most a third of a page. The API server does not
// bound the names of roles, for one, and an object that cannot be stored would stop the record.
const maxName = 1024

// lifeName gives a name as lives holds it. One that is longer is cut, and ends in a digest of the whole.
func lifeName(name string) string {
	name = clean(name)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := "…" + hex.EncodeToString(sum[:16])
	return strings.ToValidUTF8(name[:maxName-len(digest)], "") + digest
}

// A life is a row of lives.
type life struct {
	objectID  int64
	stream    int32
	namespace string
	name      string
	uid       string
	owners    []string // of its first version
	ended     bool     // in the batch in which it began: it has a row in ends, and never one in living
}

const lifeColumns = "cluster, object_id, stream, namespace, name, uid, owners"

func (l *life) copyTo(c *copyBuffer, cluster int32) {
	c.fields(7)
	c.int4(cluster)
	c.int8(l.objectID)
	c.int4(l.stream)
	c.text(l.namespace)
	c.text(l.name)
	c.text(l.uid)
	c.texts(l.owners)
}

const livingColumns = "cluster, stream, object_id"

func (l *life) copyLivingTo(c *copyBuffer, cluster int32) {
	c.fields(3)
	c.int4(cluster)
	c.int4(l.stream)
	c.int8(l.objectID)
}

// An ending is a row of ends. Its stream finds what lived, and is 0 where ends are read.
type ending struct {
	objectID, seq int64
	stream        int32
}

const endColumns = "cluster, object_id, seq"

func (e *ending) copyTo(c *copyBuffer, cluster int32) {
	c.fields(3)
	c.int4(cluster)
	c.int8(e.objectID)
	c.int8(e.seq)
}

// A gap is a row of gaps_data.
type gap struct {
	number  int64
	stream  int32
	cause   delta.Cause
	detail  string
	fromRV  *string
	fromAt  *int64
	opened  int64 // batch
	toRV    *string
	toAt    *int64
	closed  int64 // batch; 0 while open
	outcome delta.Outcome
	counts  *[4]int64 // appeared, changed, vanished, unchanged
}
