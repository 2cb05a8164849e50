package cookbook_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

var (
	// answersLine is the paragraph of a question that says which command answers it, or that none does.
	answersLine = regexp.MustCompile(`(?ms)^(With replay: |Only in SQL\.)(.*?)\n\n`)
	commandSpan = regexp.MustCompile("`(replay [^`]+)`")
)

// replies are what the commands of a question have to print, among other things.
var replies = map[string][]string{
	"Who changed this image, and from what?":                                {"kubectl-set", "shop/web:1.4.2 → registry.example/shop/web:1.5.0", "argocd-controller", "shop/worker:3.0 → registry.example/shop/worker:3.1"},
	"What changed in this namespace in the five minutes before an instant?": {"Deployment payments/ledger", "kubectl-label", "metadata.labels.tier=critical"},
	"Who scaled what?":                                                    {"horizontal-pod-autoscaler/scale", "spec.replicas 1 → 3", "kubectl/scale", "spec.replicas 2 → 4", "spec.replicas 3 → 2"},
	"Who changed labels and annotations?":                                 {"kubectl-label", "metadata.labels.tier=critical", "kubectl-annotate", "metadata.annotations.on-call=bob@example.com"},
	"Who touched RBAC in this period?":                                    {"ClusterRoleBinding bob-is-admin", "ClusterRole cluster-admin for User bob", "Role shop/deployer", "rules[0].verbs[2]=delete"},
	"Which objects were deleted, and who is proved to have written last?": {"Pod shop/web-7c9d-kx2lp", "Deployment payments/ledger", "last proved writer kubectl-annotate"},
	"What was created in this period, and by which field manager?":        {"Role shop/deployer", "Terraform"},
	"Which versions of a Secret were there?":                              {"vault-operator", "kubectl-patch", "data.password changed"},
	"What is the life of this name?":                                      {"(life 1 of 2)", "(life 2 of 2)"},
	"When was this namespace deleted, and what vanished with it?":         {"Active → Terminating", "Pod payments/ledger-8d4-p6c2r"},
	"How often did containers restart, by hour?":                          {"Pod shop/worker-66f-m8t5n", "restartCount 2 → 3", "Pod payments/ledger-8d4-p6c2r", "restartCount 0 → 1"},
	"Which nodes were not ready, and when?":                               {"Node node-b", "True → Unknown", "Unknown → True"},
	"How long did each rollout take?":                                     {"ReplicaSet web-58b created", "shop/web:1.4.2 → registry.example/shop/web:1.5.0", "Rollouts of Deployment shop/web", "done after"},
	"Which Jobs failed, and how long did they run?":                       {"migrate-schema Failed", "nightly-report Complete 1/1 3m20s"},
	"What did the Events say that the server has forgotten?":              {"Warning BackOff pod/worker-66f-m8t5n", "count 1 → 4"},
	"What did this Deployment look like at this instant?":                 {"replicas: 2", "image: registry.example/shop/web:1.4.2"},
	"What did a ConfigMap say when this Pod started?":                     {"Pod shop/web-7c9d-kx2lp", "Pending → Running", "CURRENCY: EUR"},
	"Which Pods ran on this node then?":                                   {"shop web-7c9d-z4vqw 1/1 Running", "shop worker-66f-m8t5n 1/1 Running"},
	"Which images were running at this instant?":                          {"worker-66f-m8t5n registry.example/shop/worker:3.0 sha256:"},
	"Which workloads ran without limits on this date?":                    {"Deployment api <none>", "Deployment web 256Mi", "Deployment worker <none>"},
	"What drifted between two dates?":                                     {"- ConfigMap shop/catalog", "~ ConfigMap shop/settings", "spec.replicas 2 → 4", "- Deployment payments/ledger"},
	"What was every version of this object?":                              {"CURRENCY: USD", "kubectl-patch"},
	"Where is the record incomplete?":                                     {"certificatesigningrequests.certificates.k8s.io", "forbidden"},
	"From when to when is a resource complete?":                           {"pods", "certificatesigningrequests.certificates.k8s.io"},
	"What was caught up on after a pause, and when did it happen?":        {"pause: no recorder ran", "data.CURRENCY EUR → USD"},
}

// shell runs lines in which replay is the program, as a reader does who pastes them.
type shell struct {
	env []string
	dir string // where the lines are run
}

func (w *world) shell(t *testing.T) shell {
	t.Helper()
	env := []string{
		"PATH=" + filepath.Dir(recordertest.Program("replay")) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + t.TempDir(), "KUBECONFIG=" + filepath.Join(t.TempDir(), "none"), "TZ=UTC",
		"REPLAY_DATABASE=" + w.database.Login(t, "kuberewind_auditor"),
	}
	for name, moment := range w.moments {
		env = append(env, name+"="+moment.Format(time.RFC3339Nano))
	}
	return shell{env: env}
}

// run gives what the line prints, with single spaces, and how it ends.
func (s shell) run(t *testing.T, line string) (out, errs string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env, cmd.Dir = s.env, s.dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		require.NoError(t, err, line)
	}
	return regexp.MustCompile(` {2,}`).ReplaceAllString(string(stdout), " "), stderr.String(), code
}

// succeeds says that the line did its work: 1 of diff means that something is different.
func succeeds(line string, code int) bool {
	return code == 0 || code == 1 && strings.HasPrefix(line, "replay diff")
}

// answerWithReplay runs the commands that the page names for its questions, and looks for what they have to print.
func (w *world) answerWithReplay(t *testing.T, p page) {
	t.Helper()
	sh := w.shell(t)
	for _, q := range p.questions {
		t.Run(q.title, func(t *testing.T) {
			lines := answersLine.FindAllStringSubmatch(q.text, -1)
			require.Len(t, lines, 1, `a question has one paragraph that begins with "With replay: " or "Only in SQL."`)
			if lines[0][1] == "Only in SQL." {
				require.Empty(t, replies[q.title])
				return
			}
			commands := commandSpan.FindAllStringSubmatch(lines[0][2], -1)
			require.NotEmpty(t, commands)
			require.NotEmpty(t, replies[q.title], "the test knows what the answer is")
			var said strings.Builder
			for _, command := range commands {
				out, errs, code := sh.run(t, command[1])
				require.True(t, succeeds(command[1], code), "%s: exit code %d: %s", command[1], code, errs)
				said.WriteString(out)
			}
			for _, reply := range replies[q.title] {
				require.Contains(t, said.String(), reply)
			}
		})
	}
}
