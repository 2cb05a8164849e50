package story

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/trouble"
	"github.com/kuberewind/kuberewind/patch"
)

// A Moment is a delta at which something began or ended.
type Moment struct {
	Seq                    int64
	ObservedAt, OccurredAt time.Time    // as they are on record
	Span                   history.Span // when it happened
	Manager, Subresource   string       // if the version proves it
}

func momentOf(e *Entry) *Moment {
	return &Moment{Seq: e.Seq, ObservedAt: e.ObservedAt, OccurredAt: e.OccurredAt, Span: e.Span, Manager: e.Manager, Subresource: e.Subresource}
}

// An Outcome says how a rollout ended.
type Outcome string

// The outcomes of rollouts.
const (
	Underway Outcome = ""         // it has not ended, as far as was read
	Done     Outcome = "done"     // all replicas are of the new template, and available
	Undone   Outcome = "undone"   // the template before came back
	Replaced Outcome = "replaced" // another template came
	Deleted  Outcome = "deleted"  // the Deployment was deleted
)

// A Rollout is the way of a Deployment from one template to the next.
type Rollout struct {
	Deployment    *Object
	Start         *Moment   // nil: it started before what was read
	Created       bool      // with the Deployment
	Before, After patch.Doc // spec.template; Before is nil if there was none, or it is not known
	Revision      string    // as the controller numbers them; "" if it gave no number
	Troubles      []*Trouble
	End           *Moment
	Outcome       Outcome
}

// A Trouble is why a rollout was stuck.
type Trouble struct {
	Reason, Message string
	At              *Moment   // when it was first seen
	Objects         []*Object // that had it: Pods, or the Deployment
}

// stuck notes a trouble of an object.
func (r *Rollout) stuck(why trouble.Trouble, e *Entry) {
	i := slices.IndexFunc(r.Troubles, func(t *Trouble) bool { return t.Reason == why.Reason })
	if i < 0 {
		i = len(r.Troubles)
		r.Troubles = append(r.Troubles, &Trouble{Reason: why.Reason, Message: why.Message, At: momentOf(e)})
	}
	if t := r.Troubles[i]; !slices.Contains(t.Objects, e.Object) {
		t.Objects = append(t.Objects, e.Object)
	}
}

func (r *Rollout) end(outcome Outcome, e *Entry) { r.Outcome, r.End = outcome, momentOf(e) }

// A tracker watches the entries for rollouts.
type tracker struct {
	all         []*Rollout
	deployments map[*Object]*deployment
	templates   map[*Object]patch.Doc // of ReplicaSets, as their Deployment has it
}

// A deployment is what is known of a Deployment.
type deployment struct {
	current  *Rollout
	revision string // before the rollout
}

func newTracker() tracker {
	return tracker{deployments: map[*Object]*deployment{}, templates: map[*Object]patch.Doc{}}
}

// rolls reports whether objects of a stream take part in rollouts, and are to be known before their Pods are.
func rolls(s *history.Stream) bool {
	return s.Group == "apps" && (s.Resource == "deployments" || s.Resource == "replicasets")
}

// meet takes an object as it was before its first entry.
func (t *tracker) meet(o *Object, doc patch.Doc) {
	if o.Stream.Resource == "replicasets" {
		t.learn(o, doc)
		return
	}
	d := &deployment{}
	t.deployments[o] = d
	if !complete(doc) && !scaling(doc) {
		d.revision = revisionOf(doc)
		d.current = &Rollout{Deployment: o, After: template(doc), Revision: d.revision}
		t.all = append(t.all, d.current)
	}
}

func (t *tracker) see(e *Entry) {
	if e.Event != nil || e.Stream == nil {
		return
	}
	switch e.Stream.GroupResource().String() {
	case "deployments.apps":
		t.seeDeployment(e)
	case "replicasets.apps":
		t.learn(e.Object, e.Doc)
	case "pods":
		t.seePod(e)
	}
}

func (t *tracker) seeDeployment(e *Entry) {
	known := t.deployments[e.Object] != nil
	switch {
	case known:
	case e.Before != nil:
		t.meet(e.Object, e.Before)
	case e.Type != delta.Added:
		t.meet(e.Object, e.Doc)
	default:
		t.deployments[e.Object] = &deployment{}
	}
	d, before := t.deployments[e.Object], template(e.Before)
	created := !known && e.Before == nil && e.Type == delta.Added
	if created || e.Before != nil && !bytes.Equal(before, template(e.Doc)) {
		t.start(d, e, created)
	}
	if d.current != nil {
		t.follow(d, e)
	}
}

// follow looks at how a rollout goes.
func (t *tracker) follow(d *deployment, e *Entry) {
	r := d.current
	if revision := revisionOf(e.Doc); revision != d.revision {
		r.Revision = revision
	}
	if observed(e.Doc) { // what the status says before that is of the rollout before
		for _, why := range trouble.Deployment(e.Doc) {
			r.stuck(why, e)
		}
	}
	switch {
	case e.Type == delta.Deleted:
		r.end(Deleted, e)
		d.current = nil
	case complete(e.Doc):
		r.end(Done, e)
		d.current = nil
	}
}

// start starts a rollout, and ends the previous one.
func (t *tracker) start(d *deployment, e *Entry, created bool) {
	after := template(e.Doc)
	if r := d.current; r != nil {
		outcome := Replaced
		if bytes.Equal(after, r.Before) {
			outcome = Undone
		}
		r.end(outcome, e)
	}
	d.revision = revisionOf(e.Doc)
	d.current = &Rollout{Deployment: e.Object, Start: momentOf(e), Created: created, Before: template(e.Before), After: after}
	t.all = append(t.all, d.current)
}

// learn notes the template of a ReplicaSet, which never changes, as its Deployment has it.
func (t *tracker) learn(o *Object, doc patch.Doc) {
	if t.templates[o] != nil {
		return
	}
	const hash = "/metadata/labels/pod-template-hash"
	if own, err := patch.Apply(template(doc), []byte(`[{"op":"remove","path":"`+hash+`"}]`)); err == nil {
		t.templates[o] = own
	}
}

func (t *tracker) seePod(e *Entry) {
	set := e.Object.Owner
	if set == nil || t.deployments[set.Owner] == nil {
		return
	}
	r := t.deployments[set.Owner].current
	if r == nil || !bytes.Equal(t.templates[set], r.After) || e.Type == delta.Deleted {
		return
	}
	for _, why := range trouble.Pod(e.Doc) {
		r.stuck(why, e)
	}
}

func template(doc patch.Doc) patch.Doc {
	value, _ := patch.Get(doc, "/spec/template")
	return value
}

func revisionOf(doc patch.Doc) string {
	return text(doc, "/metadata/annotations/deployment.kubernetes.io~1revision")
}

// observed reports whether the status of a Deployment is about its present spec.
func observed(doc patch.Doc) bool {
	return cmp.Or(number(doc, "/status/observedGeneration"), "0") == number(doc, "/metadata/generation")
}

// scaling reports whether a Deployment that is not complete has rolled out its template before: its replicas come or go. While the controller has
// not observed the spec, nobody can tell.
func scaling(doc patch.Doc) bool {
	conditions, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(conditions) {
		if text(c, "/type") == "Progressing" {
			return observed(doc) && text(c, "/reason") == "NewReplicaSetAvailable"
		}
	}
	return false
}

// complete reports whether a Deployment is what its spec says, as the controller and kubectl rollout status judge it.
func complete(doc patch.Doc) bool {
	count := func(pointer string) string { return cmp.Or(number(doc, pointer), "0") }
	replicas := cmp.Or(number(doc, "/spec/replicas"), "1")
	return observed(doc) &&
		count("/status/updatedReplicas") == replicas && count("/status/replicas") == replicas && count("/status/availableReplicas") == replicas
}
