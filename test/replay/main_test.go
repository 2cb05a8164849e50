// Package replay_test runs whole systems: a real API server with etcd, the recorder's binary, a real PostgreSQL, and replay beside the
// real kubectl.
package replay_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder", "replay") }
