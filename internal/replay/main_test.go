package replay

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/signals"
)

// TestMain runs the program itself if the test binary is named replay.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == env.ProgramName {
		streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		os.Exit(Execute(signals.End(context.Background()), os.Args[0], os.Args[1:], streams))
	}
	pgtest.Main(m)
}
