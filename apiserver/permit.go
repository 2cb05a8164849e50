package apiserver

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/history"
)

// A permit holds what the caller of one call may read. It asks the live cluster, and asks again while a watch is open.
type permit struct {
	gate       *gate
	attributes authorizer.AttributesRecord
	resource   *served
	namespace  string
	since      int64 // the caller may read from this seq on
}

// newPermit makes the permit of a call after its options were read. It allows nothing yet.
func (c *call) newPermit(ctx context.Context) *permit {
	return &permit{gate: c.at.cluster.gate, attributes: c.attributes(ctx), resource: c.resource, namespace: c.namespace}
}

// attributes returns what a call asks the live cluster about.
func (c *call) attributes(ctx context.Context) authorizer.AttributesRecord {
	verb := "get"
	switch {
	case c.options.Watch:
		verb = "watch"
	case c.name == "":
		verb = "list"
	}
	caller, _ := request.UserFrom(ctx)
	return authorizer.AttributesRecord{
		User: caller, Verb: verb, ResourceRequest: true, Namespace: c.info.Namespace, Name: c.info.Name, Subresource: c.info.Subresource,
		APIGroup: c.resource.Group, APIVersion: c.resource.Version, Resource: c.resource.GroupVersionResource.Resource,
	}
}

// allow decides whether the caller may read from a seq on, and keeps that seq for later checks.
func (p *permit) allow(ctx context.Context, seq int64) error {
	if err := p.gate.allow(ctx, p.attributes, seq); err != nil {
		return err
	}
	p.since, p.resource.granted = seq, true
	return nil
}

// allowVersion decides whether the caller may read the resource at a version older than the version of seq now.
func (p *permit) allowVersion(ctx context.Context, version history.Point, now int64) error {
	if p.gate.open() {
		return nil
	}
	seq, err := p.unchanged(ctx, version, now)
	if err != nil {
		return unresolved(err)
	}
	return p.allow(ctx, seq)
}

// unchanged returns the last seq, up to now, at which the call's objects were still as they were at a version. The version
// of a quiet resource can be far older than the namespace, although that version shows nothing older than the namespace.
func (p *permit) unchanged(ctx context.Context, version history.Point, now int64) (int64, error) {
	scope := history.Scope{Streams: p.resource.scope.Streams, Namespace: p.namespace}
	query := history.Query{Scope: scope, FromSeq: version.CompleteUpTo(scope) + 1, ToSeq: now}
	for d, err := range p.gate.record.Deltas(ctx, query) {
		if err != nil {
			return 0, err
		}
		if !version.Includes(&d) {
			return d.Seq - 1, nil
		}
	}
	return now, nil
}

// whileAllowed runs a watch until it ends, or until the caller loses the right to read. In that case it returns the
// refusal.
func (p *permit) whileAllowed(ctx context.Context, run func(context.Context) error) error {
	if p.gate.open() {
		return run(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		p.recheck(ctx, cancel)
	}()
	err := run(ctx)
	cancel(nil)
	<-checked
	var refused apierrors.APIStatus
	if cause := context.Cause(ctx); errors.As(cause, &refused) {
		return cause
	}
	return err
}

// recheck checks periodically whether the caller may still read, and cancels if not. It returns when ctx ends.
func (p *permit) recheck(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(p.gate.Recheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := p.gate.allow(ctx, p.attributes, p.since); err != nil && ctx.Err() == nil {
			cancel(err)
			return
		}
	}
}
