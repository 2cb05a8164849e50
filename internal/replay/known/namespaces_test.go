package known_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestUnknownNamespaceReportsANamespaceThatNeverExisted(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	t.Setenv("REPLAY_DATABASE", database.URL())
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	said := func(args ...string) string {
		t.Helper()
		var errs bytes.Buffer
		replay.Execute(t.Context(), "replay", args, genericiooptions.IOStreams{Out: io.Discard, ErrOut: &errs})
		return errs.String()
	}
	const never = `Note: the record never held a namespace "shpo"; did you mean "shop"?`
	require.Contains(t, said("get", "pods", "-n", "shpo"), never)
	require.Contains(t, said("snapshot", "-n", "shpo"), never)
	require.Contains(t, said("diff", "-n", "shpo", "--from", "seq:300"), never)
	require.Contains(t, said("get", "pods", "-n", "\x1b[31m"), `Note: the record never held a namespace "\x1b[31m"`+"\n")
	for _, namespace := range []string{"shop", "billing"} {
		require.NotContains(t, said("get", "pods", "-n", namespace), "never held")
	}
	require.NotContains(t, said("get", "pods", "-n", "legacy"), "never held", "legacy was deleted")
	require.NotContains(t, said("get", "pods", "-A"), "never held")
	require.Contains(t, said("get", "pods", "-n", "shop", "--cluster", "secne"), `did you mean "scene"?`)
	require.NotContains(t, said("get", "pods", "-n", "shop", "--cluster", "prod"), "did you mean")
}
