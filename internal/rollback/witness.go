package rollback

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
)

// witness is a version of an object that was served. As long as it is the newest of its object, etcd has it at each later revision
// of the history in which it was written.
type witness struct {
	revision        uint64
	deleted         bool // it is the end of the object: etcd has nothing of that name at the revision
	namespace, name string
	uid             types.UID
	// doc is the version as recorded; it gives nil where it is not.
	doc func() patch.Doc
	at  time.Time // when it was served, zero if a list or the record has it
}

// witnesses is how many living objects are remembered of a stream: the newest may be deleted.
const witnesses = 3

func witnessOf(o *kube.Object, revision uint64) witness {
	return witness{revision: revision, namespace: o.Namespace, name: o.Name, uid: o.UID, doc: o.Doc}
}

// living are the newest versions of living objects, in order: some of them.
type living []witness

// remember puts the newest version of an object in the place of an older one, or, if that was its end, forgets it.
func (l *living) remember(w witness, deleted bool) {
	all := slices.DeleteFunc(*l, func(other witness) bool { return other.namespace == w.namespace && other.name == w.name })
	if !deleted {
		all = append(all, w)
		slices.SortStableFunc(all, func(a, b witness) int { return cmp.Compare(a.revision, b.revision) })
		all = all[max(0, len(all)-witnesses):]
	}
	*l = all
}

// show remembers what a page of a list holds.
func (l *living) show(page []any) {
	for _, item := range page {
		if o, ok := item.(*kube.Object); ok {
			if revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64); err == nil {
				l.remember(witnessOf(o, revision), false)
			}
		}
	}
}

// newest is the zero witness where no object is known to live.
func (l living) newest() witness {
	if len(l) == 0 {
		return witness{}
	}
	return l[len(l)-1]
}

// footprint is a version that was served when it was new.
type footprint struct {
	of       *Stream
	witness            // with when it was served
	recorded time.Time // the same by the clock of the record
	history  int       // in which of its histories the stream was
}

// footprintLocked is that of what a stream is served.
func footprintLocked(c *Stream, w witness, at time.Time) footprint {
	w.at = at
	return footprint{c, w, c.all.now(), c.history.number}
}

// step tells footprints apart.
type step struct {
	of       *Stream
	revision uint64
}

func (f footprint) step() step { return step{f.of, f.revision} }
