// Package api_test compares the API of the past with a real kube-apiserver: the same questions, the same answers. kubectl and
// informers ask both, too.
package api_test

import (
	"flag"
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// How much is compared; make test-foreign asks for more than make test.
var (
	revisions = flag.Int("revisions", 8, "how many random revisions are compared")
	resources = flag.Int("resources", 8, "how many resources are compared at each of them, 0 for all")
	writes    = flag.Int("writes", 400, "how many random writes are made before")
	workloads = flag.Bool("workloads", false, "run controllers, a scheduler and kwok as well; make control-plane-full builds them")
	seed      = flag.Uint64("seed", 1, "decides the writes and the questions")
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder") }
