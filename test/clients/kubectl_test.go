package clients_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
`

func TestKubectlSaysThatThePastIsReadOnlyAndItsIntentionIsNoted(t *testing.T) {
	p := serve(t)
	kubeconfig := p.kubeconfig(t, "now")
	file := filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	for command, want := range map[string]string{
		"delete deploy web":                               "delete deployments.apps shop web",
		"delete deploy web --dry-run=server":              "delete deployments.apps shop web dry run",
		"scale deploy web --replicas=5":                   "patch deployments.apps/scale shop web",
		`patch deploy web -p {"spec":{"replicas":5}}`:     "patch deployments.apps shop web",
		"rollout restart deploy web":                      "patch deployments.apps shop web",
		"edit deploy web --validate=false":                "patch deployments.apps shop web",
		"label ns shop a=b":                               "patch namespaces shop",
		"create secret generic s --from-literal=pin=1234": "create secrets shop s no digest",
		"create ns new":                                   "create namespaces new",
		"create token default":                            "create serviceaccounts/token shop default",
		"run new --image=x":                               "create pods shop new",
		"apply --validate=false -f FILE":                  "patch deployments.apps shop web",
		"apply --validate=false --server-side -f FILE":    "patch deployments.apps shop web",
		"apply --validate=false --dry-run=server -f FILE": "patch deployments.apps shop web dry run",
		"replace --validate=false -f FILE":                "update deployments.apps shop web",
		"create --validate=false -f FILE":                 "create deployments.apps shop web",
		"delete -f FILE --cascade=orphan --wait=false":    "delete deployments.apps shop web",
		"delete --raw /api/v1/namespaces/shop/pods":       "deletecollection pods shop no digest",
	} {
		t.Run(command, func(t *testing.T) {
			before := len(p.noted(t, 0))
			got := p.run(t, kubeconfig, strings.Fields(strings.ReplaceAll(command, "FILE", file))...)
			require.Equal(t, 1, got.code, got.stdout+got.stderr)
			require.Contains(t, got.stderr, "the past is read-only: this is cluster scene as it was at 2026-")
			require.Contains(t, got.stderr, "; the intention was recorded")
			noted := p.noted(t, before)
			require.Len(t, noted, 1)
			require.Equal(t, want, about(&noted[0]))
			require.Contains(t, noted[0].UserAgent, "kubectl/")
			require.Equal(t, "kuberewind:local", noted[0].User)
		})
	}
	before := len(p.noted(t, 0))
	pod := strings.Fields(p.run(t, kubeconfig, "get", "pods", "-o", "name").stdout)[0]
	for command, says := range map[string]string{
		"logs POD":                 "logs are not on record: see the Pod's Events, and its versions (replay log pod/NAME)",
		"exec POD -- ls":           "a container of the past runs no command: see the Pod's versions (replay log pod/NAME)",
		"attach POD":               "a container of the past runs no command",
		"port-forward POD 8080:80": "a Pod or Service of the past takes no connection: see its versions (replay log)",
		"top pods":                 "Metrics API not available",
	} {
		t.Run(command, func(t *testing.T) {
			got := p.run(t, kubeconfig, strings.Fields(strings.ReplaceAll(command, "POD", pod))...)
			require.Equal(t, 1, got.code, got.stdout+got.stderr)
			require.Contains(t, got.stderr, says)
		})
	}
	require.Equal(t, "yes\n", p.run(t, kubeconfig, "auth", "can-i", "get", "pods").stdout)
	require.Empty(t, p.noted(t, before), "reviews are no writes")
}
