package rollback

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
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

// Recall takes over what the record holds, which is complete up to a position: what lives, and the newest revisions that were the stream's.
func (c *Stream) Recall(known *postgres.Known, position string, newest []string) {
	at, err := strconv.ParseUint(position, 10, 64)
	if err != nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.earlier = append(c.earlier, c.all.rollbacks...)
	c.position, c.resumed, c.begin, c.since = at, at, at, c.all.now()
	if taken := c.all.taken; !taken.IsZero() {
		c.since = taken.Add(-postgres.UnprovenFor)
	}
	for _, rv := range newest {
		if revision, err := strconv.ParseUint(rv, 10, 64); err == nil {
			c.recorded = max(c.recorded, revision)
			c.claimLocked(revision)
		}
	}
	for _, key := range known.ListKeys() {
		object, ok, _ := known.GetByKey(key)
		if !ok {
			continue
		}
		o := object.(postgres.KnownObject)
		if revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err == nil {
			c.recorded = max(c.recorded, revision)
			c.living.remember(witness{revision: revision, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID(), doc: o.Doc}, false)
		}
	}
	c.sampleRecalledLocked()
}

// sampleRecalledLocked has the probes look at the newest living object on record. When it was served is not known.
func (c *Stream) sampleRecalledLocked() {
	c.sampleNewestLocked(&sample{footprint: footprint{of: c, witness: c.living.newest(), history: c.history}, listed: c.position, recalled: true})
}

// RecallAnew takes over that the stream has left the history on record, and was listed since, up to a position.
func (c *Stream) RecallAnew(position string) {
	c.all.mu.Lock()
	c.due, c.earlier = samples{}, nil
	c.all.mu.Unlock()
	c.Recall(&postgres.Known{}, position, nil)
}

// Listing notes that a list begins: what lives is what it shows.
func (c *Stream) Listing(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.living, c.lists, c.began = nil, true, c.all.now()
	c.leftThen, c.anew = c.reversed, c.reversed || cause == delta.CauseHistoryReversed
	if cause == delta.CauseHistoryReversed {
		if !c.reversed {
			c.history++ // It is the list that shows it.
			c.headLocked().base = 0
		}
		c.forgetLocked()
	}
}

// Follow says how the stream is told that its history is no more.
func (c *Stream) Follow(reverse func(proof string)) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.reverse = reverse
}

// HasLeft reports whether the stream has left a history that is no more, and was not listed since.
func (c *Stream) HasLeft() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.reversed
}

// reachedTo is where the stream is or, where a list is due whatever the history is, was; empty where that was nowhere, or in a history that is no more.
func (c *Stream) reachedTo() string {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.position == 0 || c.reversed {
		return ""
	}
	return strconv.FormatUint(c.position, 10)
}

// Shown notes what a page of a list holds.
func (c *Stream) Shown(page []any) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.living.show(page)
}

// Listed notes that the list of a resource version is complete. If the stream has left its history meanwhile, it has to be
// listed again. The newest version that it shows is looked at as if it was served now.
func (c *Stream) Listed(resourceVersion string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.lists = false
	if c.reversed && !c.leftThen {
		return
	}
	c.reversed = false
	c.doubt, c.until, c.stranger, c.earlier = nil, deltafifo.Until{}, nil, nil
	if c.anew {
		c.recorded, c.resumed = 0, 0             // The record is of the other history.
		c.cached = window{tried: c.cached.tried} // The watch may be open already.
	}
	if c.anew || c.since.IsZero() {
		c.begin, c.since = 0, c.began
	}
	if revision, err := strconv.ParseUint(resourceVersion, 10, 64); err == nil {
		s := &sample{footprint: c.footprintLocked(c.living.newest(), time.Now()), listed: revision}
		s.recorded = c.began // What the list holds is not newer.
		c.sampleNewestLocked(s)
	}
}

// sampleNewestLocked has the probes look at the newest living object, if there is one, until there is an answer.
func (c *Stream) sampleNewestLocked(s *sample) {
	if s.name != "" {
		s.due, s.witness = true, s.reduced()
		c.due.add(s, keptDue)
	}
}

// askTimeout bounds each question: a request that nobody answers must not hold the streams up.
const askTimeout = 10 * time.Second

// sight is what etcd says of a witness.
type sight int

const (
	unknown sight = iota // etcd has forgotten, or the server does not ask it
	same                 // the object was as it was served
	other                // it was not, or not there
	ahead                // etcd has not come to that revision
)

// nobody stands for an object where none is known: any name will do to ask where etcd is.
var nobody = witness{name: "kuberewind"}

// look asks what etcd had at a revision, for which the witness is the newest version of its object. A list of one object by name at an
// exact revision is answered by etcd, whatever the API server's cache holds: that has no such lists.
func (c *Stream) look(ctx context.Context, w witness, revision uint64) (sight, error) {
	what, err := c.lookUntilAnswered(ctx, w, revision)
	if kube.SaysNothing(err) {
		return unknown, nil
	}
	return what, err
}

// lookUntilAnswered is look for who can ask again: what a server may say while it starts, or has no etcd, is no answer.
func (c *Stream) lookUntilAnswered(ctx context.Context, w witness, revision uint64) (sight, error) {
	list, err := c.listOne(ctx, w, metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(revision, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	switch {
	case kube.IsAhead(err):
		return ahead, nil
	case kube.HasForgotten(err):
		return unknown, nil
	case err != nil:
		return unknown, fmt.Errorf("look for what %s was at resource version %d: %w", c.name, revision, err)
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil || metadata.GetResourceVersion() != strconv.FormatUint(revision, 10) {
		return unknown, err
	}
	if odd, ok := list.(interface{ Undecodable() []error }); ok && len(odd.Undecodable()) > 0 {
		return unknown, nil // Something of that name is there.
	}
	found, err := c.find(list, w)
	switch {
	case err != nil:
		return unknown, err
	case w.deleted:
		return c.findEnd(list, w), nil
	case found:
		return same, nil
	}
	return other, nil
}

// findEnd is what a list says of the end of an object. That nothing is there proves nothing: another history may have nothing
// of that name either. Some aggregated servers serve the end with the version that was the last.
func (c *Stream) findEnd(list runtime.Object, w witness) sight {
	if meta.LenList(list) == 0 {
		return unknown
	}
	if last, err := c.find(list, w); last || err != nil {
		return unknown
	}
	return other
}

func (c *Stream) listOne(ctx context.Context, w witness, options metav1.ListOptions) (runtime.Object, error) {
	namespace := w.namespace
	if w.name == "" {
		w = nobody
		if c.namespaced {
			namespace = metav1.NamespaceDefault
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()
	return c.in(namespace).ListWithContext(ctx, options)
}

// lookNow is look for where etcd has forgotten the revision: what the object is now cannot be older than what was served.
func (c *Stream) lookNow(ctx context.Context, w witness) (sight, error) {
	getter, ok := c.in(w.namespace).(interface {
		Get(ctx context.Context, namespace, name string) (*kube.Object, error)
	})
	if w.name == "" || !ok {
		return unknown, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	o, err := getter.Get(ctx, w.namespace, w.name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return unknown, nil // It may have been deleted since.
	case err != nil:
		return unknown, fmt.Errorf("look for what is newest of %s: %w", c.name, err)
	}
	switch revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64); {
	case err != nil || revision > w.revision:
		return unknown, nil // opaque versions cannot be compared
	case revision == w.revision && o.UID == w.uid && c.sameMetadata(o, w):
		return same, nil
	}
	return other, nil
}

// undoneInEtcd gives what was served and is not in the etcd of this stream any more, by the stream that it was served of.
func (c *Stream) undoneInEtcd() map[*Stream]witness {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	found := map[*Stream]witness{}
	for _, o := range c.all.streams {
		if o.headLocked() == c.headLocked() && o.undone.name != "" {
			found[o] = o.undone
		}
	}
	return found
}

// find reports whether a list holds what was served.
func (c *Stream) find(list runtime.Object, w witness) (bool, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		o, ok := item.(*kube.Object)
		if ok && o.Name == w.name && o.Namespace == w.namespace {
			return o.UID == w.uid && o.ResourceVersion == strconv.FormatUint(w.revision, 10) && c.sameMetadata(o, w), nil
		}
	}
	return false, nil
}

// sameMetadata compares what tells when an object was written, so that one revision has it twice only in two histories. Labels and annotations
// are no such evidence: rules of redaction, erasures, and conversion to another served version make them others in one history.
func (c *Stream) sameMetadata(o *kube.Object, w witness) bool {
	if w.doc == nil || c.canonical == nil {
		return true
	}
	was := w.doc()
	if was == nil {
		return true
	}
	if _, err := c.canonical(o); err != nil {
		return true
	}
	type manager struct {
		Time metav1.Time `json:"time"`
	}
	return matching[metav1.Time](was, o.Doc(), "/metadata/creationTimestamp") &&
		matching[metav1.Time](was, o.Doc(), "/metadata/deletionTimestamp") &&
		matching[int64](was, o.Doc(), "/metadata/generation") &&
		matching[[]manager](was, o.Doc(), "/metadata/managedFields")
}

// matching compares two objects at a path. What cannot be read was redacted or erased, and says nothing.
func matching[T any](a, b patch.Doc, path string) bool {
	was, readable := valueAt[T](a, path)
	is, both := valueAt[T](b, path)
	return !readable || !both || reflect.DeepEqual(was, is)
}

// valueAt is zero where there is nothing.
func valueAt[T any](doc patch.Doc, path string) (value T, readable bool) {
	text, found := patch.Get(doc, path)
	if !found {
		return value, true
	}
	err := json.Unmarshal(text, &value)
	return value, err == nil
}

// currentRevision is how an API server says where etcd is, to who asks for more.
var currentRevision = regexp.MustCompile(`current: (\d+)`)

// trueNow is the revision at which etcd is, as an API server says that only knows it from etcd. Those that do not say have it asked for
// with a list. Each such request leaves a warning in the API server's log.
func (c *Stream) trueNow(ctx context.Context) (uint64, error) {
	_, err := c.listOne(ctx, witness{}, metav1.ListOptions{
		ResourceVersion: strconv.FormatInt(math.MaxInt64, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if kube.IsAhead(err) {
		if found := currentRevision.FindStringSubmatch(err.Error()); found != nil && found[1] != "0" {
			return strconv.ParseUint(found[1], 10, 64)
		}
	}
	return c.now(ctx)
}

// now is the revision that a list says, 0 if it is none.
func (c *Stream) now(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := c.in("").ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("ask where %s is: %w", c.name, err)
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil {
		return 0, err
	}
	revision, err := strconv.ParseUint(metadata.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, nil // opaque versions are nobody else's
	}
	return revision, nil
}
