package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"
)

// startLimit is many times what a start takes on a busy machine of two cores.
const startLimit = 3 * time.Minute

// failureLog is how many lines of each component's log a failed test shows.
const failureLog = 20

// ForTest starts a control plane that ends with the test. The test fails if it cannot be started; it is never
// skipped. If the test fails, the ends of the components' logs are shown.
func ForTest(tb testing.TB, options Options) *ControlPlane {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), startLimit, errors.New("it took too long"))
	defer cancel()
	plane, err := Start(ctx, options)
	if err != nil {
		tb.Fatalf("starting a control plane: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(plane.Logs(failureLog))
		}
		if err := plane.Stop(); err != nil {
			tb.Errorf("stopping the control plane: %v", err)
		}
	})
	return plane
}
