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
	Manager, Subresource   string       // if the version proves them
}

func momentOf(e *Entry) *Moment {
	return &Moment{Seq: e.Seq, ObservedAt: e.ObservedAt, OccurredAt: e.OccurredAt, Span: e.Span, Manager: e.Manager, Subresource: e.Subresource}
}

// An Outcome says how a rollout ended.
type Outcome string

// These are the outcomes of rollouts.
const (
	Underway Outcome = ""         // it has not ended, as far as the entries go
	Done     Outcome = "done"     // all replicas have the new template, and are available
	Undone   Outcome = "undone"   // the previous template came back
	Replaced Outcome = "replaced" // another template came
	Deleted  Outcome = "deleted"  // the Deployment was deleted
)

// A Rollout is the change of a Deployment from one template to the next.
type Rollout struct {
	Deployment    *Object
	Start         *Moment   // nil: it started before the entries
	Created       bool      // with the Deployment
	Before, After patch.Doc // spec.template; Before is nil if there was none, or if it is not known
	Revision      string    // the number from the controller; "" if there is none
	Troubles      []*Trouble
	End           *Moment
	Outcome       Outcome
}

// A Trouble is the reason why a rollout was stuck.
type Trouble struct {
	Reason, Message string
	At              *Moment   // when an entry first showed it
	Objects         []*Object // the objects with this trouble: Pods, or the Deployment
}

// stuck adds a trouble of an object.
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

// A tracker finds the rollouts in the entries.
type tracker struct {
	all         []*Rollout
	deployments map[*Object]*deployment
	templates   map[*Object]patch.Doc // of ReplicaSets, in the form of their Deployment
}

// A deployment is the state of a Deployment.
type deployment struct {
	current  *Rollout
	revision string // from before the rollout
}

func newTracker() tracker {
	return tracker{deployments: map[*Object]*deployment{}, templates: map[*Object]patch.Doc{}}
}

// rolls reports whether objects of a stream take part in rollouts. The tracker must know them before it sees their Pods.
func rolls(s *history.Stream) bool {
	return s.Group == "apps" && (s.Resource == "deployments" || s.Resource == "replicasets")
}

// setPrior sets the state of an object before its first entry.
func (t *tracker) setPrior(o *Object, doc patch.Doc) {
	if o.Stream.Resource == "replicasets" {
		t.addTemplate(o, doc)
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

func (t *tracker) observe(e *Entry) {
	if e.Event != nil || e.Stream == nil {
		return
	}
	switch e.Stream.GroupResource().String() {
	case "deployments.apps":
		t.observeDeployment(e)
	case "replicasets.apps":
		t.addTemplate(e.Object, e.Doc)
	case "pods":
		t.observePod(e)
	}
}

func (t *tracker) observeDeployment(e *Entry) {
	known := t.deployments[e.Object] != nil
	switch {
	case known:
	case e.Before != nil:
		t.setPrior(e.Object, e.Before)
	case e.Type != delta.Added:
		t.setPrior(e.Object, e.Doc)
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

// follow updates a rollout from an entry.
func (t *tracker) follow(d *deployment, e *Entry) {
	r := d.current
	if revision := revisionOf(e.Doc); revision != d.revision {
		r.Revision = revision
	}
	if observed(e.Doc) { // An older status belongs to the previous rollout.
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

// addTemplate keeps the template of a ReplicaSet in the form of its Deployment. The template never changes.
func (t *tracker) addTemplate(o *Object, doc patch.Doc) {
	if t.templates[o] != nil {
		return
	}
	const hash = "/metadata/labels/pod-template-hash"
	if own, err := patch.Apply(template(doc), []byte(`[{"op":"remove","path":"`+hash+`"}]`)); err == nil {
		t.templates[o] = own
	}
}

func (t *tracker) observePod(e *Entry) {
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

// observed reports whether the status of a Deployment describes its present spec.
func observed(doc patch.Doc) bool {
	return cmp.Or(number(doc, "/status/observedGeneration"), "0") == number(doc, "/metadata/generation")
}

// scaling reports whether an incomplete Deployment has rolled out its template before: it only gains or loses replicas.
// Until the controller has observed the spec, this is unknown, and scaling returns false.
func scaling(doc patch.Doc) bool {
	conditions, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(conditions) {
		if text(c, "/type") == "Progressing" {
			return observed(doc) && text(c, "/reason") == "NewReplicaSetAvailable"
		}
	}
	return false
}

// complete reports whether a Deployment has reached its spec, as the controller and kubectl rollout status judge it.
func complete(doc patch.Doc) bool {
	count := func(pointer string) string { return cmp.Or(number(doc, pointer), "0") }
	replicas := cmp.Or(number(doc, "/spec/replicas"), "1")
	return observed(doc) &&
		count("/status/updatedReplicas") == replicas && count("/status/replicas") == replicas && count("/status/availableReplicas") == replicas
}
