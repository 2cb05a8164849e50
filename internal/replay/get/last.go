package get

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// gone adds when an object was deleted, by which delta, and what shows its last state.
func (t *transport) gone(r apiRequest, missing error) error {
	var status *apierrors.StatusError
	if !apierrors.IsNotFound(missing) || !errors.As(missing, &status) {
		return missing
	}
	scope := history.Scope{Streams: r.resource.StreamIDs(r.namespace), Namespace: r.namespace, Name: r.name}
	end, err := resource.EndOf(t.ctx, t.view.Rec.Record, scope, t.view.Point)
	if err != nil || end.Seq == 0 {
		return errors.Join(err, missing)
	}
	status.ErrStatus.Message += fmt.Sprintf(": deleted at %s, by seq:%d; \"%s\" shows its last state", end.Stamp(), end.Seq, r.resource.Last(t.view.Env.Command, scope))
	t.told = true
	return status
}

// lastInstant is when the object that arguments name is shown. If it was alive, that is the instant asked for. Else it is just before its end.
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
	g.env.Note(fmt.Sprintf("%s %q was deleted at %s, by seq:%d: this is its last state before that", r, scope.Name, end.Stamp(), end.Seq))
	return history.AtSeq(end.Seq - 1), nil
}
