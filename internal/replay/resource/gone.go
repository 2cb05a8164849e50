package resource

import (
	"context"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/output"
)

// An End is the delta that ended the last life of a name.
type End struct {
	Seq       int64 // 0 if no life has ended
	Span      history.Span
	Estimated bool
	// Alive is true if a life of the name goes on.
	Alive bool
}

// EndOf returns the delta that ended the newest life of a name, up to a point.
func EndOf(ctx context.Context, rec *history.Record, scope history.Scope, p history.Point) (end End, err error) {
	for life, err := range rec.Lives(ctx, history.LifeQuery{Scope: scope, BornBy: max(p.Seq, p.Until)}) {
		if err != nil {
			return end, err
		}
		if life.DeletedSeq > 0 && life.DeletedSeq <= max(p.Seq, p.Until) {
			end.Seq = max(end.Seq, life.DeletedSeq)
		} else {
			end.Alive = true
		}
	}
	if end.Seq == 0 {
		return end, nil
	}
	for d, err := range rec.Deltas(ctx, history.Query{Scope: scope, FromSeq: end.Seq, ToSeq: end.Seq}) {
		if err != nil {
			return end, err
		}
		if end.Span, err = rec.Times().Of(ctx, &d); err != nil {
			return end, err
		}
		end.Estimated = !d.ObservedAt.Equal(d.OccurredAt)
	}
	return end, nil
}

// Stamp formats the time of the end for an error: short, and marked if it is an estimate.
func (e End) Stamp() string {
	return output.Mark(e.Estimated, e.Span.Contradictory) + e.Span.Estimate.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}

// Last returns the command that shows the last state of an object.
func (r *Resource) Last(command string, scope history.Scope) string {
	text := fmt.Sprintf("%s get %s/%s", command, r, scope.Name)
	if scope.Namespace != "" {
		text += " -n " + scope.Namespace
	}
	return text + " --last"
}

// Gone returns an error: the object did not exist at the instant. The error has the time of the last deletion of the name,
// and the command that shows its last state.
func (r *Resource) Gone(command string, scope history.Scope, end End) error {
	if end.Seq == 0 {
		return fmt.Errorf("%s %q did not exist at that instant", r, scope.Name)
	}
	return fmt.Errorf("%s %q was deleted at %s, by seq:%d; \"%s\" shows its last state", r, scope.Name, end.Stamp(), end.Seq, r.Last(command, scope))
}
