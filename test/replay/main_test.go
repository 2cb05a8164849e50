// Package replay_test runs whole systems. A real API server with etcd, the recorder's binary, a real PostgreSQL, and replay run
// beside the real kubectl.
package replay_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder", "replay") }
