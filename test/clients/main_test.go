// Package clients_test runs unmodified clients of Kubernetes on the past, through the program: kubectl, k9s, and a manager of
// controller-runtime. Informers are in test/api.
package clients_test

import (
	"flag"
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// programs are of modules of their own.
var programs = flag.String("programs", "", "folder with the programs controller and k9s, which make test-clients builds")

func TestMain(m *testing.M) { recordertest.Main(m, "replay") }
