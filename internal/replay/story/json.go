package story

import (
	"io"
	"time"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/story"
)

// The JSON form is public: the help of story documents it.
type (
	line struct {
		*entries.Entry
		Class change.Class `json:"class"`
		Depth int          `json:"depth"`
		Owner *reference   `json:"owner,omitempty"`
		Event *event       `json:"event,omitempty"`
		About *reference   `json:"about,omitempty"`
	}
	reference struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
		UID  string `json:"uid"`
	}
	event struct {
		Type      string `json:"type"`
		Reason    string `json:"reason"`
		Message   string `json:"message"`
		Count     string `json:"count,omitempty"`
		Component string `json:"component,omitempty"`
	}
	rollout struct {
		Deployment string       `json:"deployment"`
		UID        string       `json:"uid"`
		Revision   string       `json:"revision,omitempty"`
		Created    bool         `json:"created"`
		Start      *moment      `json:"start,omitempty"`
		Changes    []field.JSON `json:"changes"`
		Troubles   []trouble    `json:"troubles"`
		Outcome    string       `json:"outcome"`
		End        *moment      `json:"end,omitempty"`
	}
	trouble struct {
		Reason  string      `json:"reason"`
		Message string      `json:"message,omitempty"`
		At      *moment     `json:"at"`
		Objects []reference `json:"objects"`
	}
	moment struct {
		Seq           int64     `json:"seq"`
		ObservedAt    time.Time `json:"observedAt"`
		OccurredAt    time.Time `json:"occurredAt"`
		Estimated     bool      `json:"estimated"`
		NotBefore     time.Time `json:"notBefore,omitzero"` // of an estimate
		NotAfter      time.Time `json:"notAfter,omitzero"`
		Contradictory bool      `json:"contradictory,omitempty"` // clocks of servers contradict the order
		Manager       string    `json:"manager"`
		Subresource   string    `json:"subresource"`
	}
)

// jsonPrinter writes one object per line.
type jsonPrinter struct{ out io.Writer }

func (p *jsonPrinter) title(*story.Object) error { return nil } // each line names its object

func (p *jsonPrinter) entry(e *story.Entry, shown *entries.Entry) error {
	l := line{Entry: shown, Class: e.Change.Class, Depth: e.Object.Depth}
	if owner := e.Object.Owner; owner != nil && e.Event == nil {
		l.Owner = referenceTo(owner)
	}
	if e.Event != nil {
		l.Event, l.About = (*event)(e.Event), referenceTo(e.Object)
	}
	return output.WriteJSON(p.out, l, false)
}

func referenceTo(o *story.Object) *reference {
	return &reference{Kind: o.Stream.Kind, Name: o.Name, UID: o.UID}
}

func (p *jsonPrinter) remark(r entries.Remark) error {
	return output.WriteJSON(p.out, map[string]entries.Remark{"note": r}, false)
}

func (p *jsonPrinter) rollouts(all []*story.Rollout) error {
	for _, r := range all {
		if err := output.WriteJSON(p.out, map[string]rollout{"rollout": rolloutOf(r)}, false); err != nil {
			return err
		}
	}
	return nil
}

func rolloutOf(r *story.Rollout) rollout {
	out := rollout{
		Deployment: r.Deployment.Name, UID: r.Deployment.UID, Revision: r.Revision, Created: r.Created, Start: momentOf(r.Start), Changes: []field.JSON{},
		Troubles: []trouble{}, Outcome: string(r.Outcome), End: momentOf(r.End),
	}
	if r.Start != nil && !r.Created {
		out.Changes = field.JSONOf(field.Changes(r.Before, r.After))
	}
	for _, t := range r.Troubles {
		next := trouble{Reason: t.Reason, Message: t.Message, At: momentOf(t.At)}
		for _, o := range t.Objects {
			next.Objects = append(next.Objects, *referenceTo(o))
		}
		out.Troubles = append(out.Troubles, next)
	}
	return out
}

func momentOf(m *story.Moment) *moment {
	if m == nil {
		return nil
	}
	out := &moment{
		Seq: m.Seq, ObservedAt: m.ObservedAt, OccurredAt: m.Span.Estimate, Estimated: estimated(m), Contradictory: m.Span.Contradictory,
		Manager: m.Manager, Subresource: m.Subresource,
	}
	if out.Estimated {
		out.NotBefore, out.NotAfter = m.Span.NotBefore, m.Span.NotAfter
	}
	return out
}
