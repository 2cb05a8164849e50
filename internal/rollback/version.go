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
type servedVersion struct {
	revision        uint64
	deleted         bool // it is the end of the object: etcd has nothing of that name at the revision
	namespace, name string
	uid             types.UID
	// doc is the version as recorded; it gives nil where it is not.
	doc func() patch.Doc
	at  time.Time // when it was served, zero if a list or the record has it
}

// witnesses is how many living objects are remembered of a stream: the newest may be deleted.
const keptLiving = 3

func versionOf(o *kube.Object, revision uint64) servedVersion {
	return servedVersion{revision: revision, namespace: o.Namespace, name: o.Name, uid: o.UID, doc: o.Doc}
}

// living are the newest versions of living objects, in order: some of them.
type living []servedVersion

// remember puts the newest version of an object in the place of an older one, or, if that was its end, forgets it.
func (l *living) remember(v servedVersion, deleted bool) {
	all := slices.DeleteFunc(*l, func(other servedVersion) bool { return other.namespace == v.namespace && other.name == v.name })
	if !deleted {
		all = append(all, v)
		slices.SortStableFunc(all, func(a, b servedVersion) int { return cmp.Compare(a.revision, b.revision) })
		all = all[max(0, len(all)-keptLiving):]
	}
	*l = all
}

// show remembers what a page of a list holds.
func (l *living) addPage(page []any) {
	for _, item := range page {
		if o, ok := item.(*kube.Object); ok {
			if revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64); err == nil {
				l.remember(versionOf(o, revision), false)
			}
		}
	}
}

// newest is the zero witness where no object is known to live.
func (l living) newest() servedVersion {
	if len(l) == 0 {
		return servedVersion{}
	}
	return l[len(l)-1]
}

// footprint is a version that was served when it was new.
type observation struct {
	stream        *Stream
	servedVersion           // with when it was served
	recordTime    time.Time // the same by the clock of the record
	history       int       // in which of its histories the stream was
}

// footprintLocked is that of what a stream is served.
func observationLocked(c *Stream, v servedVersion, at time.Time) observation {
	v.at = at
	return observation{c, v, c.all.now(), c.history.number}
}

// step tells footprints apart.
type observationKey struct {
	stream   *Stream
	revision uint64
}

func (o observation) key() observationKey { return observationKey{o.stream, o.revision} }
