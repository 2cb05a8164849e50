package cookbook_test

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const limits = `resources: {limits: {cpu: 500m, memory: 256Mi}}`

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func serializer() runtime.NegotiatedSerializer { return scheme.Codecs.WithoutConversion() }

// catalog is large beside everything else.
func catalog() string { return strings.Repeat("shoes,hats,umbrellas;", 2000) }

func deployment(namespace, name, image string, replicas int, resources string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers:
      - name: main
        image: %[3]s
        %[5]s`, namespace, name, image, replicas, resources)
}

func secret(password string) string {
	return `{apiVersion: v1, kind: Secret, metadata: {name: db-login, namespace: shop}, stringData: {user: shop, password: ` + password + `}}`
}

// replicaSet is what the deployment controller makes for a revision.
func (s *story) replicaSet(namespace, owner, name string, revision int) {
	app := s.manager.get(ref{deployments, namespace, owner})
	template, _ := app.Object["spec"].(map[string]any)
	s.manager.create(replicaSets, fmt.Sprintf(`
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: %[3]s
  namespace: %[1]s
  annotations: {deployment.kubernetes.io/revision: "%[5]d"}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: %[2]s, uid: %[4]s, controller: true, blockOwnerDeletion: true}]
spec: {replicas: %[7]v, selector: {matchLabels: {app: %[2]s}}, template: %[6]s}`,
		namespace, owner, name, app.GetUID(), revision, asJSON(s.t, template["template"]), template["replicas"]))
}

// pod is one to be started.
type pod struct{ namespace, owner, suffix, node, image, resources string }

func (p pod) ref() ref { return ref{pods, p.namespace, p.owner + "-" + p.suffix} }

// start is what the ReplicaSet controller makes, the scheduler binds and the kubelets start, in this order for all.
func (s *story) start(wanted ...pod) {
	for _, p := range wanted {
		s.manager.create(pods, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %[2]s
  namespace: %[1]s
  labels: {app: %[6]s}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %[3]s, uid: %[4]s, controller: true}]
spec:
  containers:
  - name: main
    image: %[5]s
    %[7]s`, p.namespace, p.ref().name, p.owner, s.manager.get(ref{replicaSets, p.namespace, p.owner}).GetUID(), p.image,
			strings.Split(p.owner, "-")[0], p.resources))
		s.scheduler.bind(p.ref(), p.node)
	}
	for _, p := range wanted {
		s.running(p.ref(), p.image, 0)
	}
}

// running is what the kubelet writes when a container has started, again and again. The first time it adds that the Pod is ready.
func (s *story) running(pod ref, image string, restarts int) {
	status := map[string]any{"phase": "Running", "startTime": podStart, "containerStatuses": []any{map[string]any{
		"name": "main", "image": image, "imageID": fmt.Sprintf("sha256:%x", image), "ready": true, "restartCount": restarts,
		"state": map[string]any{"running": map[string]any{"startedAt": fmt.Sprintf("2026-11-20T02:%02d:00Z", restarts)}},
	}}}
	if restarts == 0 {
		conditions, _, _ := unstructured.NestedSlice(s.kubelet.get(pod).Object, "status", "conditions")
		status["conditions"] = append(conditions, map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": podStart})
	}
	s.kubelet.merge(pod, asJSON(s.t, map[string]any{"status": status}), "status")
}

// podStart is the same in each run: whether two writes fell into one second must not show.
const podStart = "2026-11-20T02:00:00Z"

// progress is the status that the deployment controller writes.
func (s *story) progress(namespace, name string, available, replicas int, reason string) {
	r := ref{deployments, namespace, name}
	s.manager.merge(r, fmt.Sprintf(`status: {observedGeneration: %[5]d, replicas: %[2]d, updatedReplicas: %[1]d, readyReplicas: %[1]d, availableReplicas: %[1]d,
  conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable, lastUpdateTime: %[4]q, lastTransitionTime: %[4]q},
    {type: Progressing, status: "True", reason: %[3]s, lastUpdateTime: %[4]q, lastTransitionTime: %[4]q}]}`,
		available, replicas, reason, now(), s.manager.get(r).GetGeneration()), "status")
}

func (a *actor) event(name, kind, reason, message string, count int) {
	a.create(events, fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %[1]s, namespace: shop}
involvedObject: {apiVersion: v1, kind: Pod, namespace: shop, name: %[2]s}
type: %[3]s
reason: %[4]s
message: %[5]q
count: %[6]d
firstTimestamp: %[7]q
lastTimestamp: %[7]q
source: {component: %[8]s}`, name, strings.TrimSuffix(name, ".1"), kind, reason, message, count, now(), a.manager))
}
