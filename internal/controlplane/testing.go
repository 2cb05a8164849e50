package controlplane

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// startLimit is many times what a start takes on a busy machine of two cores.
const startLimit = 5 * time.Minute

// failureLog is how many lines of each component's log a failed test shows.
const failureLog = 20

// ForTest starts a control plane that ends with the test. The test fails if it cannot be started; it is never
// skipped. If the test fails, the ends of the components' logs are shown.
func ForTest(tb testing.TB, options Options) *ControlPlane {
	tb.Helper()
	plane := startForTest(tb, options)
	tb.Cleanup(func() { stopForTest(tb, plane) })
	return plane
}

func startForTest(tb testing.TB, options Options) *ControlPlane {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), startLimit, errors.New("it took too long"))
	defer cancel()
	plane, err := Start(ctx, options)
	if err != nil {
		tb.Fatalf("starting a control plane: %v", err)
	}
	return plane
}

func stopForTest(tb testing.TB, plane *ControlPlane) {
	tb.Helper()
	if tb.Failed() {
		tb.Log(plane.Logs(failureLog))
	}
	if err := plane.Stop(); err != nil {
		tb.Errorf("stopping the control plane: %v", err)
	}
}

// A Pool lends control planes to tests that do not change them: to start one takes ten seconds of CPU time. It is safe for
// concurrent use.
type Pool struct {
	Options Options
	// Restore undoes what a test may have done to the cluster. A control plane that it fails for is lent no more.
	Restore func(context.Context, *ControlPlane) error

	mu   sync.Mutex // protects idle
	idle []*ControlPlane
}

// ForTest lends a control plane until the test has ended, one that others have used if there is one. That of a test that fails ends with it.
func (p *Pool) ForTest(tb testing.TB) *ControlPlane {
	tb.Helper()
	plane := p.take()
	if plane == nil {
		plane = startForTest(tb, p.Options)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(tb.Context()), startLimit, errors.New("it took too long"))
		defer cancel()
		if err := p.Restore(ctx, plane); err != nil {
			tb.Errorf("restoring the cluster: %v", err)
		}
		if tb.Failed() {
			stopForTest(tb, plane)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle = append(p.idle, plane)
	})
	return plane
}

func (p *Pool) take() *ControlPlane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	plane := p.idle[last]
	p.idle = p.idle[:last]
	return plane
}

// Stop stops the ones that are not lent.
func (p *Pool) Stop() error {
	var errs []error
	for plane := p.take(); plane != nil; plane = p.take() {
		errs = append(errs, plane.Stop())
	}
	return errors.Join(errs...)
}
