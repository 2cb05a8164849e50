package open

import (
	"bytes"
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/replay/env"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAUsedLinkCountsAsOpen uses a program that fails after it has passed the link to a browser.
func TestAUsedLinkCountsAsOpen(t *testing.T) {
	program, err := exec.LookPath("false")
	require.NoError(t, err)
	var notes bytes.Buffer
	e := env.New(genericiooptions.IOStreams{Out: &notes, ErrOut: &notes}, nil)
	e.DataDir = t.TempDir()
	failed, err := (&command{env: e}).browse(t.Context(), program, "http://127.0.0.1:1/#code=used", func(ctx context.Context) (bool, error) {
		<-ctx.Done()
		return true, nil
	})
	require.NoError(t, err)
	require.Empty(t, failed, "the link was used")
	require.Contains(t, notes.String(), "the page is open in your browser")
}
