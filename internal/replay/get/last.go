package get

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// gone adds to an error when and by which delta the object was deleted, and the command that shows its last state.
func (t *transport) gone(r apiRequest, missing error) error {
	ended, err := t.view.Gone(t.ctx, r.resource, r.namespace, r.name, missing)
	t.goneNoted = t.goneNoted || ended
	return err
}

// lastInstant returns the instant at which get shows the named object. If the object was alive at the requested instant, it
// returns that instant. If not, it returns the seq before the deletion.
func (g *getCommand) lastInstant(ctx context.Context, rec *env.Record, args []string, at history.Instant, namespace string) (history.Instant, error) {
	when, _, err := g.env.TimeOf(ctx, rec, at)
	if err != nil {
		return at, err
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, when, g.env.Note)
	if err != nil {
		return at, err
	}
	targets, err := catalog.Targets(args)
	if err != nil {
		return at, err
	}
	r, scope, err := resource.One(targets, namespace)
	if err != nil {
		return at, fmt.Errorf("--last: %w", err)
	}
	point, err := rec.Resolve(ctx, at, scope)
	if err != nil {
		return at, err
	}
	end, err := resource.EndOf(ctx, rec.Record, scope, point)
	switch {
	case err != nil || end.Alive:
		return at, err
	case end.Seq == 0:
		return at, r.NeverRecorded(scope)
	}
	g.env.Note(fmt.Sprintf("%s %q was deleted at %s, by seq:%d: this is its last state", r, scope.Name, end.Stamp(), end.Seq))
	return history.AtSeq(end.Seq - 1), nil
}
