package cookbook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

var (
	namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes               = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods                = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	events              = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	jobs                = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	roles               = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	crds                = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// story is what happens in the cluster. No controller runs: the story writes what they would write, under their names, so
// that it goes the same way each time.
type story struct {
	*world
	alice, bob                                       *actor
	manager, scheduler, kubelet, kubeadm, hpa, vault *actor
	uids                                             map[string]types.UID
}

func play(t *testing.T) *story {
	t.Helper()
	awaitQuietDay(t)
	w := newWorld(t)
	s := &story{
		world: w, alice: w.person(t, "alice"), bob: w.person(t, "bob"),
		manager: w.controller(t, "kube-controller-manager"), scheduler: w.controller(t, "kube-scheduler"),
		kubelet: w.controller(t, "kubelet"), kubeadm: w.controller(t, "kubeadm"),
		hpa: w.controller(t, "horizontal-pod-autoscaler"), vault: w.controller(t, "vault-operator"),
		uids: map[string]types.UID{},
	}
	s.before()
	w.record()
	w.await("what the server says of itself", `SELECT EXISTS (SELECT FROM kuberewind.server WHERE path = '/version')`)
	w.moment("from")
	s.shopOpens()
	s.paymentsChange()
	s.nodeFails()
	s.workerRestarts()
	w.moment("at")
	s.settingsChange()
	s.rollout()
	s.scaling()
	s.jobs()
	s.rotation()
	s.rights()
	s.orphan()
	s.definition()
	s.paymentsGo()
	s.heartbeats()
	w.stopRecording()
	s.unattended()
	w.record()
	s.caughtUp()
	w.awaitEvents()
	w.moment("to")
	// The record goes on beyond the last moment: nothing about it is a guess.
	s.ready("node-a", "True", "KubeletStillReady")
	w.stopRecording()
	return s
}

// storyTakes is several times what the story takes.
const storyTakes = 3 * time.Minute

// awaitQuietDay keeps the story within one UTC day: the page counts by day.
func awaitQuietDay(t *testing.T) {
	t.Helper()
	tomorrow := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	if left := time.Until(tomorrow); left < storyTakes {
		select {
		case <-time.After(left):
		case <-t.Context().Done():
		}
	}
}

// before is what the recorder finds when it starts.
func (s *story) before() {
	for _, node := range []string{"node-a", "node-b"} {
		s.kubeadm.create(nodes, `{apiVersion: v1, kind: Node, metadata: {name: `+node+`, labels: {topology.kubernetes.io/zone: `+node[5:]+`}}}`)
	}
	s.manager.create(namespaces, `{apiVersion: v1, kind: Namespace, metadata: {name: legacy}}`)
	s.uids["legacy/api"] = s.kubeadm.create(deployments, deployment("legacy", "api", "registry.example/legacy/api:0.9", 0, ""))
	s.replicaSet("legacy", "api", "api-59d", 0)
	s.mayRead(s.kubeadm)
	for _, node := range []string{"node-a", "node-b"} {
		s.ready(node, "True", "KubeletReady")
	}
}

func (s *story) ready(node, status, reason string) {
	by := s.kubelet
	if status == "Unknown" {
		by = s.manager
	}
	by.merge(ref{nodes, "", node}, fmt.Sprintf(`status: {conditions: [{type: Ready, status: "%s", reason: %s, message: "", lastHeartbeatTime: %q, lastTransitionTime: %q}]}`,
		status, reason, now(), now()), "status")
}

// shopOpens makes the first workloads, and rolls them out.
func (s *story) shopOpens() {
	s.alice.kubectl(`
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: storefront}}
---
apiVersion: v1
kind: Namespace
metadata: {name: payments, labels: {team: ledger}}
`, []ref{{namespaces, "", "shop"}, {namespaces, "", "payments"}}, "apply", "-f", "-")
	s.alice.kubectl(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {LOG_LEVEL: info, CURRENCY: EUR}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: catalog, namespace: shop}
data: {catalog.json: "`+catalog()+`"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: feature-flags, namespace: payments}
data: {instant-refunds: "off"}
`, []ref{{configMaps, "shop", "settings"}, {configMaps, "shop", "catalog"}, {configMaps, "payments", "feature-flags"}}, "apply", "-f", "-")
	s.vault.create(secrets, secret("monday"))
	s.alice.kubectl(deployment("shop", "web", "registry.example/shop/web:1.4.2", 2, limits)+"\n---"+
		deployment("shop", "worker", "registry.example/shop/worker:3.0", 1, "")+"\n---"+
		deployment("payments", "ledger", "registry.example/payments/ledger:7.1", 1, limits),
		[]ref{{deployments, "shop", "web"}, {deployments, "shop", "worker"}, {deployments, "payments", "ledger"}}, "apply", "-f", "-")
	for _, r := range []struct{ namespace, deployment, replicaSet string }{
		{"shop", "web", "web-7c9d"}, {"shop", "worker", "worker-66f"}, {"payments", "ledger", "ledger-8d4"},
	} {
		s.uids[r.namespace+"/"+r.deployment] = s.manager.get(ref{deployments, r.namespace, r.deployment}).GetUID()
		s.replicaSet(r.namespace, r.deployment, r.replicaSet, 1)
	}
	s.start(
		pod{"shop", "web-7c9d", "kx2lp", "node-a", "registry.example/shop/web:1.4.2", limits},
		pod{"shop", "web-7c9d", "z4vqw", "node-b", "registry.example/shop/web:1.4.2", limits},
		pod{"shop", "worker-66f", "m8t5n", "node-b", "registry.example/shop/worker:3.0", ""},
		pod{"payments", "ledger-8d4", "p6c2r", "node-a", "registry.example/payments/ledger:7.1", limits},
	)
	s.progress("shop", "web", 2, 2, "NewReplicaSetAvailable")
	s.progress("shop", "worker", 1, 1, "NewReplicaSetAvailable")
	s.progress("payments", "ledger", 1, 1, "NewReplicaSetAvailable")
}

// paymentsChange is the question afterwards: what changed there, in the minutes before?
func (s *story) paymentsChange() {
	flags := ref{configMaps, "payments", "feature-flags"}
	s.uids["first flags"] = s.alice.get(flags).GetUID()
	s.bob.kubectl("", nil, "delete", "configmap", "feature-flags", "-n", "payments")
	s.bob.awaitDeleted(s.uids["first flags"])
	s.alice.kubectl(`{apiVersion: v1, kind: ConfigMap, metadata: {name: feature-flags, namespace: payments}, data: {instant-refunds: "on"}}`,
		[]ref{flags}, "apply", "-f", "-")
	s.uids["second flags"] = s.alice.get(flags).GetUID()
	s.alice.kubectl("", []ref{{deployments, "payments", "ledger"}}, "label", "deployment", "ledger", "-n", "payments", "tier=critical")
	s.bob.kubectl("", []ref{{deployments, "payments", "ledger"}}, "annotate", "deployment", "ledger", "-n", "payments", "on-call=bob@example.com")
}

// nodeFails takes a Node away for a while.
func (s *story) nodeFails() {
	s.ready("node-b", "Unknown", "NodeStatusUnknown")
	s.ready("node-b", "True", "KubeletReady")
}

// workerRestarts is a crash loop, with its Events.
func (s *story) workerRestarts() {
	worker := ref{pods, "shop", "worker-66f-m8t5n"}
	for restarts := 1; restarts <= 3; restarts++ {
		s.running(worker, "registry.example/shop/worker:3.0", restarts)
	}
	// It does not live for long.
	s.kubelet.event("worker-66f-m8t5n.1", "Warning", "BackOff", "Back-off restarting failed container main in pod worker-66f-m8t5n", 1)
	s.kubelet.merge(ref{events, "shop", "worker-66f-m8t5n.1"}, `{count: 4}`)
	s.running(ref{pods, "payments", "ledger-8d4-p6c2r"}, "registry.example/payments/ledger:7.1", 1)
	s.scheduler.event("web-58b-h7d9s.1", "Warning", "FailedScheduling", "0/2 nodes are available: 2 Insufficient memory.", 1)
}

// settingsChange comes between the starts of two generations of Pods.
func (s *story) settingsChange() {
	s.bob.kubectl("", []ref{{configMaps, "shop", "settings"}}, "patch", "configmap", "settings", "-n", "shop", "-p", `{"data":{"LOG_LEVEL":"debug"}}`)
}

// rollout is a new image.
func (s *story) rollout() {
	const image = "registry.example/shop/web:1.5.0"
	s.alice.kubectl("", []ref{{deployments, "shop", "web"}}, "set", "image", "deployment/web", "-n", "shop", "main="+image)
	s.replicaSet("shop", "web", "web-58b", 2)
	s.progress("shop", "web", 0, 2, "ReplicaSetUpdated")
	s.start(pod{"shop", "web-58b", "h7d9s", "node-a", image, limits}, pod{"shop", "web-58b", "j2n8f", "node-b", image, limits})
	for _, suffix := range []string{"kx2lp", "z4vqw"} {
		old := ref{pods, "shop", "web-7c9d-" + suffix}
		s.manager.mark(old)
		s.kubelet.delete(old)
	}
	s.manager.merge(ref{replicaSets, "shop", "web-7c9d"}, `spec: {replicas: 0}`)
	s.progress("shop", "web", 2, 2, "NewReplicaSetAvailable")
}

// scaling is done by a person, by an autoscaler, and by a tool that owns fields.
func (s *story) scaling() {
	s.hpa.merge(ref{deployments, "shop", "worker"}, `spec: {replicas: 3}`, "scale")
	s.alice.kubectl("", []ref{{deployments, "shop", "web"}}, "scale", "deployment/web", "-n", "shop", "--replicas=4")
	s.bob.kubectl(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: shop}
spec:
  template:
    spec:
      containers:
      - name: main
        image: registry.example/shop/worker:3.1
        resources: {limits: {cpu: 500m, memory: 256Mi}}
`, []ref{{deployments, "shop", "worker"}}, "apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-")
	s.progress("shop", "worker", 0, 3, "ReplicaSetUpdated")
	s.progress("shop", "worker", 3, 3, "NewReplicaSetAvailable")
	s.hpa.merge(ref{deployments, "shop", "worker"}, `spec: {replicas: 2}`, "scale")
}

// jobs are one that succeeds and one that fails. Their times are the same in each run.
func (s *story) jobs() {
	const start = "2026-11-20T02:00:00Z"
	s.job("nightly-report", start, "2026-11-20T02:03:20Z", "SuccessCriteriaMet", "Complete", "CompletionsReached", `succeeded: 1`)
	s.job("migrate-schema", start, "2026-11-20T02:00:45Z", "FailureTarget", "Failed", "BackoffLimitExceeded", `failed: 3`)
}

func (s *story) job(name, start, end, first, last, reason, count string) {
	s.manager.create(jobs, `
apiVersion: batch/v1
kind: Job
metadata: {name: `+name+`, namespace: shop}
spec:
  backoffLimit: 2
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example/shop/`+name+`:2"}]}}`)
	condition := func(kind string) string {
		return fmt.Sprintf(`{type: %s, status: "True", reason: %s, lastProbeTime: %q, lastTransitionTime: %q}`, kind, reason, end, end)
	}
	completed := ""
	if last == "Complete" {
		completed = `completionTime: "` + end + `", `
	}
	for _, status := range []string{
		`{startTime: "` + start + `", active: 1, ready: 1, uncountedTerminatedPods: {}}`,
		`{active: 0, ready: 0, ` + count + `, conditions: [` + condition(first) + `]}`,
		`{` + completed + `conditions: [` + condition(first) + `, ` + condition(last) + `]}`,
	} {
		s.manager.merge(ref{jobs, "shop", name}, `status: `+status, "status")
	}
}

// rotation changes a Secret: once only around its value, once the value.
func (s *story) rotation() {
	login := ref{secrets, "shop", "db-login"}
	s.vault.merge(login, `metadata: {annotations: {checked: "yes"}}`)
	s.vault.merge(login, `stringData: {password: tuesday}`)
	s.bob.kubectl("", []ref{login}, "patch", "secret", "db-login", "-n", "shop", "-p", `{"stringData":{"password":"wednesday"}}`)
}

// rights are given and taken.
func (s *story) rights() {
	binding := ref{clusterRoleBindings, "", "bob-is-admin"}
	s.bob.kubectl("", []ref{binding}, "create", "clusterrolebinding", "bob-is-admin", "--clusterrole=cluster-admin", "--user=bob")
	terraform := s.controller(s.t, "Terraform")
	terraform.create(roles, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: shop}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, patch]}]`)
	terraform.merge(ref{roles, "shop", "deployer"}, `rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, patch, delete]}]`)
	s.alice.delete(binding)
}

// orphan loses its owner; no garbage collector runs.
func (s *story) orphan() {
	s.kubeadm.delete(ref{deployments, "legacy", "api"})
}

// definition makes a kind of the cluster's own: what the server says of itself changes.
func (s *story) definition() {
	s.kubeadm.create(crds, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`)
	s.await("widgets in discovery", `SELECT EXISTS (SELECT FROM kuberewind.server WHERE path = '/apis' AND content::text LIKE '%example.com%')`)
	s.await("widgets to be watched", `SELECT EXISTS (SELECT FROM kuberewind.streams WHERE resource = 'widgets' AND state = 'live')`)
}

// paymentsGo deletes a namespace as the namespace controller does: marked, emptied, finalized.
func (s *story) paymentsGo() {
	payments := ref{namespaces, "", "payments"}
	uid := s.bob.get(payments).GetUID()
	s.bob.mark(payments)
	for _, r := range []ref{
		{pods, "payments", "ledger-8d4-p6c2r"}, {replicaSets, "payments", "ledger-8d4"}, {deployments, "payments", "ledger"},
		{configMaps, "payments", "feature-flags"},
	} {
		s.manager.delete(r)
	}
	namespace := s.manager.get(payments)
	namespace.Object["spec"] = map[string]any{}
	body, err := namespace.MarshalJSON()
	require.NoError(s.t, err)
	config := s.plane.Config()
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer()
	client, err := rest.RESTClientFor(config)
	require.NoError(s.t, err)
	require.NoError(s.t, client.Put().AbsPath("/api/v1/namespaces/payments/finalize").Body(body).
		SetHeader("Content-Type", "application/json").Do(s.t.Context()).Error())
	s.manager.awaitDeleted(uid)
}

// heartbeats are what fills a record most.
func (s *story) heartbeats() {
	for beat := range 12 {
		s.kubelet.merge(ref{nodes, "", "node-a"}, fmt.Sprintf(`status: {nodeInfo: {bootID: boot-%d, machineID: "", systemUUID: "", kernelVersion: "", osImage: "", containerRuntimeVersion: "", kubeletVersion: "", kubeProxyVersion: "", operatingSystem: "", architecture: ""}}`, beat), "status")
	}
}

// unattended happens while no recorder runs. It is one resource, because the order of writes to two would be unknown.
func (s *story) unattended() {
	s.bob.kubectl("", []ref{{configMaps, "shop", "settings"}}, "patch", "configmap", "settings", "-n", "shop", "-p", `{"data":{"CURRENCY":"USD"}}`)
	s.bob.kubectl("", nil, "delete", "configmap", "catalog", "-n", "shop")
}

func (s *story) caughtUp() {
	s.await("the missed change", `SELECT EXISTS (SELECT FROM kuberewind.changes WHERE name = 'settings' AND new = '"USD"')`)
	s.await("the missed delete", `SELECT EXISTS (SELECT FROM kuberewind.objects WHERE name = 'catalog' AND deleted)`)
}
