package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kuberewind/kuberewind/history"
)

const (
	defaultRecheck = 30 * time.Second
	defaultMaxLag  = history.LagWithin
)

// Access says who may read. The zero value lets everyone read who reaches the Handler.
type Access struct {
	// Authorize decides whether the user of the attributes may read in the live cluster of a UID what they name. nil is a yes, and an error
	// that is Forbidden (k8s.io/apimachinery/pkg/api/errors) a no. Any other error is the answer: nobody can tell now.
	Authorize func(ctx context.Context, cluster string, a authorizer.Attributes) error
	// Cluster gives the UID of the cluster that knows the caller of a context, "" if none does. Only its sessions are shown to the caller.
	Cluster func(ctx context.Context) string
	Recheck time.Duration // how often it is asked again for an open watch; 0 means 30 s
	MaxLag  time.Duration // how far the record may be behind while rights in a namespace count; 0 means 10 s
}

// A gate is who may read one cluster.
type gate struct {
	Access
	record *history.Record

	mu      sync.Mutex // protects what follows
	kinds   map[schema.GroupResource]bool
	checked time.Time // when kinds was read
}

func newGate(record *history.Record, a Access) *gate {
	a.Recheck, a.MaxLag = cmp.Or(a.Recheck, defaultRecheck), cmp.Or(a.MaxLag, defaultMaxLag)
	return &gate{Access: a, record: record}
}

// open says whether everyone may read.
func (g *gate) open() bool { return g.Authorize == nil }

// allow decides whether a caller may read what the attributes name, as it was at a seq and later.
//
// A right in a namespace is one of the namespace that lives now. It reaches back to the delta that began its life: earlier
// deltas are another object's. Beyond it, and if that delta cannot be found, the right in the whole cluster is asked for.
func (g *gate) allow(ctx context.Context, a authorizer.AttributesRecord, seq int64) error {
	if g.open() {
		return nil
	}
	var beyond string
	if a.Namespace != "" {
		begin, unknown, err := g.begin(ctx, a)
		switch {
		case err != nil:
			return unavailable(err)
		case unknown != "":
			beyond = unknown
		case seq < begin:
			beyond = fmt.Sprintf("the namespace %s that lives now began at seq:%d", a.Namespace, begin)
		}
	}
	if beyond == "" {
		return g.Authorize(ctx, g.record.Cluster().UID, &a)
	}
	namespace := a.Namespace
	a.Namespace = ""
	err := g.Authorize(ctx, g.record.Cluster().UID, &a)
	var known apierrors.APIStatus
	if apierrors.IsForbidden(err) && errors.As(err, &known) {
		status := known.Status()
		status.Message += fmt.Sprintf(" (a right in namespace %s is not enough: %s)", namespace, beyond)
		return &apierrors.StatusError{ErrStatus: status}
	}
	return err
}

// begin gives the seq of the delta that began the life of the namespace of the attributes, or says why rights in it do not count.
func (g *gate) begin(ctx context.Context, a authorizer.AttributesRecord) (seq int64, unknown string, err error) {
	pulse, err := g.record.Commits().Pulse(ctx)
	if err != nil {
		return 0, "", err
	}
	if unknown := unsure(pulse, g.MaxLag); unknown != "" {
		return 0, unknown, nil
	}
	living, err := g.living(ctx)
	if err != nil {
		return 0, "", err
	}
	if !living[schema.GroupResource{Group: a.APIGroup, Resource: a.Resource}] {
		return 0, "the cluster has no such resource any more", nil
	}
	return g.life(ctx, a.Namespace)
}

// life finds the living namespace of a name.
func (g *gate) life(ctx context.Context, namespace string) (begin int64, unknown string, err error) {
	streams, err := g.record.Streams(ctx)
	if err != nil {
		return 0, "", err
	}
	scope := history.Scope{Name: namespace}
	for _, s := range streams {
		if s.GroupResource() == (schema.GroupResource{Resource: "namespaces"}) && s.Scope == "" && s.State.Name == streamLive {
			scope.Streams = append(scope.Streams, s.ID)
		}
	}
	if scope.Streams == nil {
		return 0, "namespaces are not being recorded", nil
	}
	for l, err := range g.record.Lives(ctx, history.LifeQuery{Scope: scope}) {
		if err != nil {
			return 0, "", err
		}
		if l.DeletedSeq == 0 {
			begin = l.ObjectID
		}
	}
	if begin == 0 {
		return 0, "no namespace of this name lives", nil
	}
	return begin, "", nil
}

// streamLive is the state of a stream that is followed.
const streamLive = "live"

// living are the resources of the newest discovery on record, read as often as revisions are.
func (g *gate) living(ctx context.Context) (map[schema.GroupResource]bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.checked) < revisionFresh {
		return g.kinds, nil
	}
	resources, err := g.record.Server().Discovery(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	g.kinds = make(map[schema.GroupResource]bool, len(resources))
	for _, r := range resources {
		g.kinds[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = true
	}
	g.checked = time.Now()
	return g.kinds, nil
}

// allow decides on what a review asks about. Paths are everyone's.
func (at *instant) allow(ctx context.Context, a authorizer.Attributes) error {
	if !a.IsResourceRequest() {
		return nil
	}
	return at.cluster.gate.allow(ctx, authorizer.AttributesRecord{
		User: a.GetUser(), Verb: a.GetVerb(), ResourceRequest: a.IsResourceRequest(), Namespace: a.GetNamespace(), Name: a.GetName(),
		Subresource: a.GetSubresource(), APIGroup: a.GetAPIGroup(), APIVersion: a.GetAPIVersion(), Resource: a.GetResource(),
	}, at.point.Seq)
}

// errUndecided denies what is read before it was decided who may.
func errUndecided(s *served) error {
	return apierrors.NewForbidden(s.GroupResource(), "", errors.New("it was not decided whether the caller may read it"))
}

// unsure says why a namespace that lives by the record may be gone by now, "" if the record is at most so far behind. A recorder that can
// reach its database and not its cluster is found out after history.QuietWithin.
func unsure(p history.Pulse, most time.Duration) string {
	seen := p.ObservedAt
	if p.RenewedAt.After(seen) {
		seen = p.RenewedAt
	}
	if p.Now.Sub(seen) <= most && p.Lag() <= most && p.Quiet(0) <= max(most, history.QuietWithin) {
		return ""
	}
	return fmt.Sprintf("the record ends %s ago, and the namespace may be another by now", max(p.Now.Sub(p.ObservedAt), p.Lag()).Round(time.Second))
}
