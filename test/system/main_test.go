// Package system_test runs whole systems: the recorder's binary against a real API server with etcd and a real PostgreSQL.
package system_test

import (
	"context"
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder") }

// patience is how long anything may take.
const patience = recordertest.Patience

func eventually(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	recordertest.Eventually(ctx, t, what, condition)
}
