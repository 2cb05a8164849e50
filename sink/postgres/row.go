package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/kuberewind/kuberewind/internal/chain"
)

// A row is a row of deltas_data. Its texts have been through clean.
type row struct {
	chain.Delta
	patch  []byte // nil is NULL
	object []byte // nil is NULL
	exact  []byte // nil is NULL
}

const deltaColumns = "cluster, stream, seq, object_id, observed_at, occurred_at, type, source, manager_evidence, rv, version, manager, manager_hint, subresource, digest, patch, object, exact"

func (r *row) copyTo(c *copyBuffer, cluster int32) {
	c.fields(18)
	c.int4(cluster)
	c.int4(r.Stream)
	c.int8(r.Seq)
	c.int8(r.ObjectID)
	c.time(r.Observed)
	c.time(r.Occurred)
	c.int2(r.Kind)
	c.int2(r.Source)
	c.code(r.Evidence)
	c.text(r.RV)
	c.text(r.Version)
	c.name(r.Manager)
	c.name(r.Hint)
	c.name(r.Subresource)
	c.bytes(r.Digest[:])
	c.jsonb(r.patch)
	c.bytes(r.object)
	c.bytes(r.exact)
}

// maxName is how many bytes of a name lives holds, because an entry of an index takes at most a third of a page. The
// API server does not bound the names of roles, for example, and an object that cannot be stored would stop the record.
const maxName = 1024

// lifeName returns a name as lives holds it. It cuts a longer name and appends a digest of the whole.
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
	chain.Life
	owners []string // of its first version
	ended  bool     // in the batch in which it began: it has a row in ends, and never one in living
}

const lifeColumns = "cluster, object_id, stream, namespace, name, uid, owners"

func (l *life) copyTo(c *copyBuffer, cluster int32) {
	c.fields(7)
	c.int4(cluster)
	c.int8(l.ObjectID)
	c.int4(l.Stream)
	c.text(l.Namespace)
	c.text(l.Name)
	c.text(l.UID)
	c.texts(l.owners)
}

const livingColumns = "cluster, stream, object_id"

func (l *life) copyLivingTo(c *copyBuffer, cluster int32) {
	c.fields(3)
	c.int4(cluster)
	c.int4(l.Stream)
	c.int8(l.ObjectID)
}

// An ending is a row of ends. The stream is the key of its row in living.
type ending struct {
	chain.End
	stream int32
}

const endColumns = "cluster, object_id, seq"

func (e *ending) copyTo(c *copyBuffer, cluster int32) {
	c.fields(3)
	c.int4(cluster)
	c.int8(e.ObjectID)
	c.int8(e.Seq)
}

// A gap is a row of gaps_data.
type gap struct {
	chain.Gap
	opened, closed int64 // batches; closed is 0 while it is open
}
