package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// loadRecorded finds the resources whose end an earlier recorder may not have seen. No stream that is opened because its
// resource is served shows what has become of them.
func (r *Recorder) loadRecorded(ctx context.Context) error {
	streams, err := r.sink.Recorded(ctx)
	if err != nil {
		return err
	}
	for _, s := range streams {
		resource := kube.Resource{Group: s.Group, Version: s.Version, Name: s.Resource, Kind: s.Kind, Namespaced: s.Namespaced, DefinitionUID: types.UID(s.DefinitionUID)}
		defined := s.DefinitionUID != "" && (s.DefinitionEnd == "" || delta.Precedes(s.Position, s.DefinitionEnd))
		if s.Scope == "" && s.Position != "" && (s.Alive || defined) && r.filter.Resource(resource.GroupResource()) {
			r.recorded = append(r.recorded, resource)
		}
	}
	return nil
}

// loadUnfollowed finds the definitions that a recorder before this one has recorded, and ended before it followed their resources.
func (r *Recorder) loadUnfollowed(ctx context.Context) error {
	definitions, err := r.sink.Unfollowed(ctx)
	if err != nil {
		return err
	}
	r.unfollowed = map[types.UID]string{}
	for _, d := range definitions {
		// What was left out then is listed: nobody was to follow it.
		if r.filterBefore == nil || r.filterBefore.Resource(schema.ParseGroupResource(d.Name)) {
			r.unfollowed[types.UID(d.UID)] = d.Created
		}
	}
	return nil
}

var errDefinedBefore = errors.New("what became of the definition before is not on record yet")

// definedPatience is how long a resource waits for the record of definitions. Then it goes on from its position, of which etcd may know no more.
const definedPatience = time.Minute

// waiting is how long a resource has waited, under one definition, for a fact that is needed before it is followed.
type waiting struct {
	under types.UID
	since time.Time
}

// over reports whether the patience is at an end. It begins with the first call for a definition.
func (w *waiting) over(under types.UID, patience time.Duration) bool {
	if w.under != under || w.since.IsZero() {
		*w = waiting{under, time.Now()}
	}
	return time.Since(w.since) >= patience
}

// endedBefore reports whether the stream is on record up to the end of its earlier definitions, which an earlier recorder
// followed. A watch from since may show the rest. If all definitions are recorded, one that came and went while nobody
// followed it is on record by then.
func (r *Recorder) endedBefore(ctx context.Context, s *stream, resource kube.Resource, since string) (bool, error) {
	if s.left != nil || !r.filter.For(kube.Definitions).Everything() {
		return false, nil
	}
	d, err := r.sink.DefinedBefore(ctx, resource.Group, resource.Name, resource.DefinitionUID)
	if err != nil {
		s.waits = waiting{} // Nothing was put on record meanwhile.
		return false, err
	}
	if d.UpTo == "" {
		return false, nil
	}
	if delta.Precedes(d.UpTo, since) {
		return false, s.definedLater(resource)
	}
	if d.Blind {
		return false, nil
	}
	for _, life := range d.Lives {
		if life.End == "" { // There is another now.
			return false, s.definedLater(resource)
		}
		// The follower has not passed over a life whose begin it saw. Since is from before the life's end only if it is from
		// its begin, or earlier.
		if life.Created != "" && delta.Precedes(r.definitions, life.Created) && delta.Precedes(since, life.End) {
			continue
		}
		return life.End != postgres.Pruned && !delta.Precedes(s.record.Position(), life.End), nil
	}
	return false, nil
}

// definedLater fails with errDefinedBefore until the patience is at an end.
func (s *stream) definedLater(resource kube.Resource) error {
	if s.waits.over(resource.DefinitionUID, definedPatience) {
		return nil
	}
	return errDefinedBefore
}

// vacantFrom gives a resource version at which another definition begins and the stream has nothing alive, as far as is on
// record. The server is to be asked whether that is so. It is empty if there is none. From is what the stream is launched
// with: since, or nothing if it goes on from its position.
func (h *handler) vacantFrom(ctx context.Context, s *stream, resource kube.Resource, since string) (at, from string, err error) {
	before := s.current()
	switch {
	case s.unlisted != start{}: // It is listed.
		return "", "", nil
	case s.ended != "":
		return delta.Later(since, s.ended), since, nil
	case since == "":
		return "", "", nil
	case before != nil:
		if !before.concluded() {
			return "", "", nil
		}
		before.halt() // What it has seen, it has seen.
		if !before.concluded() || delta.Precedes(since, before.reflector.ResumeResourceVersion()) || !h.vacant(s) {
			return "", "", nil
		}
		return since, since, nil
	case s.left != nil:
		if s.left.listing || !delta.Precedes(cmp.Or(s.left.Position.Complete, s.record.Position()), since) {
			return "", "", nil
		}
		return since, "", nil // What it leaves alive lies on disk.
	case s.record.Position() == "":
		return "", "", nil
	}
	ended, err := h.endedBefore(ctx, s, resource, since)
	if err != nil || !h.vacant(s) {
		return "", "", err
	}
	at = delta.Later(since, s.record.Newest())
	if !ended {
		since = ""
	}
	return at, since, nil
}

// vacant tells whether nothing of a stream that has no run is alive.
func (r *Recorder) vacant(s *stream) bool {
	fifo := r.queue.FIFO(deltafifo.FIFOOptions{Stream: s, Name: s.name, KnownObjects: s.record.Known(), Rules: s.rules.String()})
	defer fifo.Close()
	return fifo.Vacant()
}

// How long it is asked whether objects have outlived a definition.
const (
	// refusedPatience is for a server that answers something else. A stream may fail for as long before that is reported.
	refusedPatience = 30 * time.Second
	// askedPatience is for all servers, also one that does not answer. By default, etcd forgets after about as long.
	askedPatience = 10 * time.Minute
)

// asking is what has come of it so far, under one definition.
type asking struct {
	refused, asked waiting
	// answered is for which resource version there was an answer, and left is that. It counts until the stream is launched: what waits for the database meanwhile
	// asks once, as etcd forgets.
	answered string
	left     bool
}

// over reports whether nobody will tell.
func (a *asking) over(under types.UID, err error) bool {
	forgotten := a.asked.over(under, askedPatience)
	if !saysNothing(err) {
		a.refused = waiting{}
		return forgotten
	}
	return a.refused.over(under, refusedPatience) || forgotten
}

// outlived reports whether objects of a resource may be alive at a version from which the stream would go on as if there were
// none. It fails while that may still be answered. If no answer comes, the stream is listed, and a gap says what is not known.
//
// A definition can go without its objects. The API server deletes them for a finalizer. Somebody may have taken the finalizer
// away, and a request that deletes all definitions at once does not set it (Delete of the registry of
// apiextensions-apiserver). The objects are served again under the next definition, and no watch from there shows them.
func (h *handler) outlived(ctx context.Context, resource kube.Resource, at string) (bool, error) {
	gr := resource.GroupResource()
	a := h.asking[gr]
	if a == nil || a.asked.under != resource.DefinitionUID {
		a = &asking{asked: waiting{under: resource.DefinitionUID}}
		h.asking[gr] = a
	}
	if a.answered == at {
		return a.left, nil
	}
	left, err := h.objectsAt(ctx, resource, at)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false, ctx.Err()
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || isAhead(err):
		h.log.Info("nobody knows any more whether objects have outlived a definition", "resource", resource.String(), "resource_version", at, "error", err)
		left = true // It may also be that etcd was put back to before it.
	case !a.over(resource.DefinitionUID, err):
		// Not to be taken for an error of the database, or for an end of the recorder.
		return false, fmt.Errorf("look for objects of %s that have outlived a definition before: %v", resource, err) //nolint:errorlint // see above
	default:
		h.log.Warn("whether objects have outlived a definition is not answered", "resource", resource.String(), "resource_version", at, "error", err)
		return true, nil
	}
	a.answered, a.left = at, left
	return left, nil
}

// aheadTimeout is for a question that etcd answers at once.
const aheadTimeout = 3 * time.Second

// objectsAt reports whether there are objects of a resource at a resource version.
func (r *Recorder) objectsAt(ctx context.Context, resource kube.Resource, version string) (bool, error) {
	lister := r.client.ListWatch(resource, "")
	options := metav1.ListOptions{Limit: 1, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	in, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	objects, err := lister.Page(in, options)
	if err == nil {
		return len(objects.Items)+len(objects.Undecodable()) > 0, nil
	}
	if in.Err() == nil || ctx.Err() != nil {
		return false, err
	}
	// A cache waits for a version that is to come, and has it asked for again. What asks for a name comes from etcd, which says so at once.
	if resource.Namespaced {
		lister = r.client.ListWatch(resource, metav1.NamespaceDefault)
	}
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, "any").String()
	in, cancel = context.WithTimeout(ctx, aheadTimeout)
	defer cancel()
	if _, named := lister.Page(in, options); isAhead(named) {
		return false, named
	}
	return false, err
}

// An ending is on its way to put the end of a stream on record. It waits: for the last deletions, and for what of the stream lies on disk.
type ending struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// stop returns when it has ended.
func (e *ending) stop() {
	if e != nil {
		e.cancel()
		<-e.done
	}
}

// retire ends the stream of a resource that is not served any more. If this process did not follow it, run is nil.
func (h *handler) retire(ctx context.Context, s *stream, run *streamRun, resource kube.Resource, at string) {
	s.ending.stop()
	ctx, cancel := context.WithCancel(ctx)
	e := &ending{cancel: cancel, done: make(chan struct{})}
	s.ending = e
	if run != nil {
		run.outlivedBy(resource)
	}
	h.retirements.Go(func() {
		defer close(e.done)
		defer cancel()
		if run != nil {
			select {
			case <-run.left():
			case <-time.After(retireAfter):
			case <-ctx.Done():
				return
			}
			run.halt()
			if resource.DefinitionUID == "" && s.interrupted != "" {
				return
			}
		}
		if err := h.end(ctx, s, run, at); err != nil && ctx.Err() == nil {
			h.log.Warn("the end of a resource was not recorded", "resource", s.name, "error", err)
		}
	})
}

// unserved puts on record that a resource is not served which an earlier recorder followed.
func (h *handler) unserved(ctx context.Context, resource kube.Resource, at string) error {
	if !h.filter.Resource(resource.GroupResource()) {
		return nil
	}
	// If the resource has a definition, there may have been objects, though nobody came to follow it.
	if position, err := h.sink.Position(ctx, resource.Group, resource.Name); err != nil || position == "" && resource.DefinitionUID == "" {
		return err
	}
	s, _, err := h.streamOf(ctx, resource, "")
	if err != nil {
		return err
	}
	h.retire(ctx, s, nil, resource, at)
	return nil
}

// end concludes a stream. It is complete if it was watched up to the end of its definition, and has nothing left that lives.
// Otherwise there is a gap, up to a resource version at which the definition and all objects were gone. If that version is not
// known, the gap stays open.
func (r *Recorder) end(ctx context.Context, s *stream, run *streamRun, at string) error {
	// That of the run is closed.
	fifo := r.queue.FIFO(deltafifo.FIFOOptions{Stream: s, Name: s.name, KnownObjects: s.record.Known(), Rules: s.rules.String()})
	defer fifo.Close()
	defer context.AfterFunc(ctx, fifo.Close)()
	// This comes first: nobody knows what entries on disk leave alive, and a list could not be compared with them.
	if err := fifo.AwaitMemory(); err != nil {
		return err
	}
	if s.ended != "" && (at == "" || at == s.ended) {
		return nil // It is on record already.
	}
	if run != nil && run.concluded() && fifo.Vacant() {
		if err := fifo.Resumed(); err != nil {
			return err
		}
		s.interrupted = ""
		r.log.Info("the resource has ended, and the record of it is complete", "resource", s.name)
		return fifo.Bookmark(at)
	}
	from := s.start(run)
	position := cmp.Or(from.position, from.since)
	if at == "" || from.cause == delta.CauseHistoryReversed || position != "" && !delta.Precedes(position, at) {
		if s.interrupted != "" || run == nil && s.record.OpenGap() != "" {
			return nil
		}
		s.interrupted = delta.CauseNotFound
		return fifo.Interrupted(delta.CauseNotFound, "the resource is not served any more")
	}
	cause := delta.CauseNotFound
	if position == "" {
		cause = from.cause // a list was due, or on its way
	}
	const detail = "its definition was deleted, and all objects with it"
	s.interrupted = cause
	if cause == delta.CauseFirstList {
		r.log.Warn("a resource has ended of which nothing could be recorded", "resource", s.name)
	} else {
		if err := fifo.Interrupted(cause, detail); err != nil {
			return err
		}
	}
	if err := fifo.BeginReplace(cause, detail, position); err != nil {
		return err
	}
	s.unlisted, s.ended = start{cause: cause, detail: from.detail}, ""
	if err := fifo.EndReplace(at); err != nil {
		return err
	}
	s.interrupted, s.unlisted, s.ended = "", start{}, at
	s.listedUnder = s.rules.String()
	r.log.Info("the resource has ended", "resource", s.name, "resource_version", at)
	return nil
}
