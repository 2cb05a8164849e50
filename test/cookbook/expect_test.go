package cookbook_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// expect checks the answers against the story itself, so that -update cannot bless wrong ones.
func (s *story) expect(t *testing.T, p page, outputs []string) {
	t.Helper()
	of := func(title string) [][]string { t.Helper(); return answer(t, p, outputs, title) }

	require.Equal(t, []string{
		`shop web kubectl-set ["registry.example/shop/web:1.4.2"] ["registry.example/shop/web:1.5.0"]`,
		`shop worker argocd-controller ["registry.example/shop/worker:3.0"] ["registry.example/shop/worker:3.1"]`,
	}, lines(of("Who changed this image, and from what?"), 2, 3, 4, 5, 6))
	require.Equal(t, []string{
		"Added ConfigMap feature-flags kubectl-client-side-apply", "Added Deployment ledger kubectl-client-side-apply",
		"Added ReplicaSet ledger-8d4 kube-controller-manager", "Added Pod ledger-8d4-p6c2r kube-controller-manager",
		"Updated Pod ledger-8d4-p6c2r ", "Updated Pod ledger-8d4-p6c2r kubelet",
		"Updated Deployment ledger kube-controller-manager", "Deleted ConfigMap feature-flags ",
		"Added ConfigMap feature-flags kubectl-client-side-apply", "Updated Deployment ledger kubectl-label",
		"Updated Deployment ledger kubectl-annotate", "Updated Pod ledger-8d4-p6c2r kubelet",
	}, lines(of("What changed in this namespace in the five minutes before an instant?"), 1, 2, 3, 4))
	require.Equal(t, []string{
		"Deployment worker 1 3 horizontal-pod-autoscaler scale", "Deployment web 2 4 kubectl scale", "Deployment worker 3 2  ",
	}, lines(of("Who scaled what?"), 1, 3, 4, 5, 6, 7))
	require.Equal(t, []string{"Deployment ledger kubectl-label", "Deployment ledger kubectl-annotate", "Secret db-login vault-operator"},
		lines(of("Who changed labels and annotations?"), 1, 3, 4))
	require.Equal(t, []string{"Added ClusterRoleBinding bob-is-admin kubectl-create", "Added Role deployer Terraform",
		"Updated Role deployer Terraform", "Deleted ClusterRoleBinding bob-is-admin "},
		lines(of("Who touched RBAC in this period?"), 1, 2, 4, 5))
	require.Equal(t, []string{
		"ConfigMap payments feature-flags watch", "Pod shop web-7c9d-kx2lp watch", "Pod shop web-7c9d-z4vqw watch",
		"ClusterRoleBinding  bob-is-admin watch", "Deployment legacy api watch", "Pod payments ledger-8d4-p6c2r watch",
		"ReplicaSet payments ledger-8d4 watch", "Deployment payments ledger watch", "ConfigMap payments feature-flags watch",
		"Namespace  payments watch", "ConfigMap shop catalog watch",
	}, lines(of("Which objects were deleted, and who is proved to have written last?"), 1, 2, 3, 5))
	require.Equal(t, []string{"Added vault-operator", "Updated vault-operator", "Updated kubectl-patch"},
		lines(of("Which versions of a Secret were there?"), 1, 2))
	hashes := lines(of("Which versions of a Secret were there?"), 3)
	require.NotEqual(t, hashes[0], hashes[1])
	require.NotEqual(t, hashes[1], hashes[2])
	require.Equal(t, []string{string(s.uids["first flags"]), string(s.uids["second flags"])}, lines(of("What is the life of this name?"), 0))
	require.Equal(t, []string{"Pod ledger-8d4-p6c2r", "ReplicaSet ledger-8d4", "Deployment ledger", "ConfigMap feature-flags"},
		lines(of("When was this namespace deleted, and what vanished with it?"), 2, 3))

	require.Equal(t, []string{"shop worker-66f-m8t5n 3", "payments ledger-8d4-p6c2r 1"}, lines(of("How often did containers restart, by hour?"), 1, 2, 3))
	require.Equal(t, []string{"node-b Unknown NodeStatusUnknown"}, lines(of("Which nodes were not ready, and when?"), 0, 1, 2))
	require.NotEqual(t, []string{""}, lines(of("Which nodes were not ready, and when?"), 4), "it came back")
	require.Equal(t, []string{
		"web registry.example/shop/web:1.4.2", "worker registry.example/shop/worker:3.0",
		"web registry.example/shop/web:1.5.0", "worker registry.example/shop/worker:3.1",
	}, lines(of("How long did each rollout take?"), 1, 3))
	require.NotContains(t, lines(of("How long did each rollout take?"), 5), "", "all of them ended")
	require.Equal(t, []string{"migrate-schema Failed BackoffLimitExceeded 00:00:45", "nightly-report Complete CompletionsReached 00:03:20"},
		lines(of("Which Jobs failed, and how long did they run?"), 1, 2, 3, 4))
	require.Equal(t, []string{"Warning BackOff worker-66f-m8t5n 4 t", "Warning FailedScheduling web-58b-h7d9s 1 t"},
		lines(of("What did the Events say that the server has forgotten?"), 2, 3, 4, 5, 6))
	require.Equal(t, "kube-controller-manager Pod 6", lines(of("What was created in this period, and by which field manager?"), 0, 1, 2)[3])
	require.Equal(t, "Node  node-a 12", lines(of("Which objects change most?"), 0, 1, 2, 3)[0])
	s.expectThen(t, of)
	expectOfItself(t, of)
}

func (s *story) expectThen(t *testing.T, of func(string) [][]string) {
	t.Helper()
	require.Equal(t, []string{
		`web-7c9d-kx2lp {"CURRENCY": "EUR", "LOG_LEVEL": "info"}`, `web-7c9d-z4vqw {"CURRENCY": "EUR", "LOG_LEVEL": "info"}`,
		`web-58b-h7d9s {"CURRENCY": "EUR", "LOG_LEVEL": "debug"}`, `web-58b-j2n8f {"CURRENCY": "EUR", "LOG_LEVEL": "debug"}`,
	}, lines(of("What did a ConfigMap say when this Pod started?"), 0, 2))
	require.Equal(t, []string{"shop web-7c9d-z4vqw Running", "shop worker-66f-m8t5n Running"}, lines(of("Which Pods ran on this node then?"), 0, 1, 2))
	require.Equal(t, []string{"registry.example/payments/ledger:7.1 1", "registry.example/shop/web:1.4.2 2", "registry.example/shop/worker:3.0 1"},
		lines(of("Which images were running at this instant?"), 0, 2))
	require.Equal(t, []string{"Deployment legacy api main", "Deployment shop worker main"}, lines(of("Which workloads ran without limits on this date?"), 0, 1, 2, 3))
	require.Equal(t, []string{
		"removed ConfigMap payments feature-flags", "removed ConfigMap shop catalog", "changed ConfigMap shop settings",
		"removed Deployment legacy api", "removed Deployment payments ledger", "changed Deployment shop web", "changed Deployment shop worker",
	}, lines(of("What drifted between two dates?"), 0, 1, 2, 3))
	require.Equal(t, []string{"ReplicaSet legacy api-59d Deployment api " + string(s.uids["legacy/api"])},
		lines(of("Which ownerReferences pointed nowhere?"), 0, 1, 2, 3, 4, 5))
	require.Equal(t, "ConfigMap shop catalog", lines(of("Which were the largest objects?"), 0, 1, 2)[0])
	require.Equal(t, []string{
		`Added kubectl-client-side-apply {"CURRENCY": "EUR", "LOG_LEVEL": "info"}`,
		`Updated kubectl-patch {"CURRENCY": "EUR", "LOG_LEVEL": "debug"}`,
		`Updated kubectl-patch {"CURRENCY": "USD", "LOG_LEVEL": "debug"}`,
	}, lines(of("What was every version of this object?"), 1, 2, 3))
}

func expectOfItself(t *testing.T, of func(string) [][]string) {
	t.Helper()
	for _, gap := range of("Where is the record incomplete?") {
		require.Equal(t, unreadable+" forbidden", gap[0]+" "+gap[2])
		require.Empty(t, gap[4], "it is still open")
	}
	require.Equal(t, []string{
		" pods f first_list", " pods t ", "certificates.k8s.io certificatesigningrequests f forbidden", "coordination.k8s.io leases f configuration",
	}, lines(of("From when to when is a resource complete?"), 0, 1, 2, 5))
	require.Equal(t, []string{"Updated ConfigMap settings", "Deleted ConfigMap catalog"}, lines(of("What was caught up on after a pause, and when did it happen?"), 2, 3, 4))
	groups := lines(of("What did the API server say of itself then?"), 0, 1, 3)
	require.Len(t, groups, 4)
	require.NotEqual(t, groups[0][len("at"):], groups[2][len("to"):], "widgets came with a group of their own")
}
