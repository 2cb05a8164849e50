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

// Access decides who may read. With the zero value, every client of the Handler may read.
type Access struct {
	// Authorize decides whether the user of the attributes may read, in the live cluster with a UID, the resource that they
	// name. It returns nil to allow, and a Forbidden error (k8s.io/apimachinery/pkg/api/errors) to deny. Any other error
	// means that it cannot decide, and is the answer to the client.
	Authorize func(ctx context.Context, cluster string, a authorizer.Attributes) error
	// Cluster returns the UID of the cluster that knows the caller of a context, "" if none does. The caller sees only the
	// sessions of that cluster.
	Cluster func(ctx context.Context) string
	Recheck time.Duration // interval of the checks for an open watch; 0 means 30 s
	MaxLag  time.Duration // the most that the record may be behind for rights in a namespace to count; 0 means 10 s
}

// A gate decides who may read one cluster.
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

// open reports whether every client may read.
func (g *gate) open() bool { return g.Authorize == nil }

// allow decides whether a caller may read what the attributes name, as it was at a seq and later.
//
// A right in a namespace applies to the namespace that lives now. It reaches back to the delta that began the life of that
// namespace: earlier deltas belong to another object. For an earlier seq, or if that delta cannot be found, the caller
// needs the right in the whole cluster.
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
			beyond = fmt.Sprintf("the namespace %s with this name began at seq:%d", a.Namespace, begin)
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

// begin returns the seq of the delta that began the life of the attributes' namespace. If rights in that namespace do not
// count, unknown has the reason.
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
		return 0, "the cluster no longer has this resource", nil
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
		return 0, "namespaces are not recorded", nil
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
		return 0, "no namespace with this name exists now", nil
	}
	return begin, "", nil
}

// streamLive is the state of a stream that the recorder follows.
const streamLive = "live"

// living returns the resources of the newest recorded discovery. It reads them as often as revisions are read.
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

// allow decides about the attributes of a review. Every caller may read paths.
func (at *instant) allow(ctx context.Context, a authorizer.Attributes) error {
	if !a.IsResourceRequest() {
		return nil
	}
	return at.cluster.gate.allow(ctx, authorizer.AttributesRecord{
		User: a.GetUser(), Verb: a.GetVerb(), ResourceRequest: a.IsResourceRequest(), Namespace: a.GetNamespace(), Name: a.GetName(),
		Subresource: a.GetSubresource(), APIGroup: a.GetAPIGroup(), APIVersion: a.GetAPIVersion(), Resource: a.GetResource(),
	}, at.point.Seq)
}

// errUndecided denies a read before the caller's right was checked.
func errUndecided(s *served) error {
	return apierrors.NewForbidden(s.GroupResource(), "", errors.New("the caller's right to read it was not checked"))
}

// unsure says why a recorded living namespace may be gone by now, "" if the record is at most that far behind. If a
// recorder reaches its database but not its cluster, unsure notices it only after history.QuietWithin.
func unsure(p history.Pulse, most time.Duration) string {
	seen := p.ObservedAt
	if p.RenewedAt.After(seen) {
		seen = p.RenewedAt
	}
	if p.Now.Sub(seen) <= most && p.Lag() <= most && p.Quiet(0) <= max(most, history.QuietWithin) {
		return ""
	}
	return fmt.Sprintf("the record ends %s ago, and the namespace may have been replaced since", max(p.Now.Sub(p.ObservedAt), p.Lag()).Round(time.Second))
}
