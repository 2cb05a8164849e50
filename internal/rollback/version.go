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

// servedVersion is a version of an object that the API server served. As long as it is the newest of its object,
// etcd holds it at each later revision of the history in which it was written.
type servedVersion struct {
	revision        uint64
	deleted         bool // the object ended with it: at that revision, etcd has no object of that name
	namespace, name string
	uid             types.UID
	// doc returns the version as recorded, nil if there is none.
	doc func() patch.Doc
	at  time.Time // when it was served; zero if it comes from the record
}

// keptLiving is how many living objects a stream remembers: the newest may be deleted.
const keptLiving = 3

// versionOf returns an object as a served version.
func versionOf(o *kube.Object, revision uint64) servedVersion {
	return servedVersion{revision: revision, namespace: o.Namespace, name: o.Name, uid: o.UID, doc: o.Doc}
}

// living holds the newest versions of some living objects, in order.
type living []servedVersion

// remember replaces an older version of the same object. If the object was deleted, remember only removes that one.
func (l *living) remember(v servedVersion, deleted bool) {
	all := slices.DeleteFunc(*l, func(other servedVersion) bool { return other.namespace == v.namespace && other.name == v.name })
	if !deleted {
		all = append(all, v)
		slices.SortStableFunc(all, func(a, b servedVersion) int { return cmp.Compare(a.revision, b.revision) })
		all = all[max(0, len(all)-keptLiving):]
	}
	*l = all
}

// addPage remembers the objects of a page of a list.
func (l *living) addPage(page []any) {
	for _, item := range page {
		if o, ok := item.(*kube.Object); ok {
			if revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64); err == nil {
				l.remember(versionOf(o, revision), false)
			}
		}
	}
}

// newest returns the zero value if no living object is known.
func (l living) newest() servedVersion {
	if len(l) == 0 {
		return servedVersion{}
	}
	return l[len(l)-1]
}

// observation is a served version, noted at the time when it was served.
type observation struct {
	stream        *Stream
	servedVersion           // with the time at which it was served
	recordTime    time.Time // the same time by the record's clock
	historyNumber int       // the number of the stream's history
}

// observationLocked returns the observation of a version that the stream is served at a time.
func observationLocked(c *Stream, v servedVersion, at time.Time) observation {
	v.at = at
	return observation{c, v, c.all.now(), c.history.number}
}

// observationKey identifies an observation.
type observationKey struct {
	stream   *Stream
	revision uint64
}

// key returns what identifies the observation.
func (o observation) key() observationKey { return observationKey{o.stream, o.revision} }
