package faults_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A workload is one of the fifty. Only its Service has its name: what its other objects are called says nothing of it.
type workload struct {
	namespace, name, peer                                                string
	account, role, binding, secret, settings, policy, route, quota, node string
}

// namespaces have ten workloads each, a quota, and a Node of their own.
var namespaces = []string{"shop", "billing", "search", "media", "fleet"}

// names are those of the workloads. One is a part of another one, as names are.
var names = strings.Fields(`
	cart checkout catalog wishlist coupons reviews storefront pricing stock returns
	ledger invoices payouts taxes dunning receipts accounts refunds statements budgets
	indexer crawler ranking suggest synonyms facets spelling queries snippets corpus
	encoder thumbs captions playlists uploads streams subtitles artwork previews mixer
	routes trucks drivers depots parcels tracking customs manifests dispatch fuel`)

// drawn gives fifty workloads, with names of their objects that are drawn.
func drawn(r *rand.Rand) (all []*workload) {
	quotas := map[string]string{}
	for i, name := range names {
		namespace := namespaces[i/10]
		if quotas[namespace] == "" {
			quotas[namespace] = word(r, "limits")
		}
		peer := names[i/10*10+(i+1+r.IntN(9))%10]
		all = append(all, &workload{
			namespace: namespace, name: name, peer: peer, quota: quotas[namespace], node: fmt.Sprintf("node-%03d", i/10),
			account: word(r, "runner"), role: word(r, "reader"), binding: word(r, "grant"), secret: word(r, "login"), settings: word(r, "settings"),
			policy: word(r, "allow"), route: word(r, "path"),
		})
	}
	return all
}

func word(r *rand.Rand, of string) string { return fmt.Sprintf("%s-%05x", of, r.IntN(1<<20)) }

// fill puts the names of a workload into a text.
func (w *workload) fill(text string) string {
	return strings.NewReplacer("NAMESPACE", w.namespace, "NAME", w.name, "PEER", w.peer, "ACCOUNT", w.account, "ROLE", w.role, "BINDING", w.binding,
		"SECRET", w.secret, "SETTINGS", w.settings, "POLICY", w.policy, "PATH", w.route, "QUOTA", w.quota, "NODE", w.node).Replace(text)
}

const namespaceObjects = `apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: QUOTA, namespace: NAMESPACE}
spec: {hard: {pods: "90"}}
`

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: paths.net.example}
spec:
  group: net.example
  scope: Namespaced
  names: {plural: paths, singular: path, kind: Path}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {backend: {type: string}, weight: {type: integer, maximum: 100}}
`

const workloadObjects = `apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ROLE, namespace: NAMESPACE}
rules: [{apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: BINDING, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ROLE}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
---
apiVersion: v1
kind: Secret
metadata: {name: SECRET, namespace: NAMESPACE}
stringData: {password: first}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: SETTINGS, namespace: NAMESPACE}
data: {level: info}
---
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: NAMESPACE}
spec: {selector: {app: NAME}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: POLICY, namespace: NAMESPACE}
spec:
  podSelector: {matchLabels: {app: NAME}}
  ingress: [{from: [{podSelector: {matchLabels: {app: PEER}}}], ports: [{port: 80}]}]
---
apiVersion: net.example/v1
kind: Path
metadata: {name: PATH, namespace: NAMESPACE}
spec: {backend: NAME, weight: 5}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      serviceAccountName: ACCOUNT
      terminationGracePeriodSeconds: 1
      nodeSelector: {kubernetes.io/hostname: NODE}
      containers:
      - name: main
        image: registry.example/NAME:v1
        envFrom: [{secretRef: {name: SECRET}}, {configMapRef: {name: SETTINGS}}]
        env: [{name: DATABASE, value: "postgres://db.NAMESPACE/NAME"}, {name: LEVEL, value: "1"}]
`

// stages make kwok play a kubelet. An image of another registry cannot be pulled. A program ends if it is given no database.
const stages = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: image-pull}
spec:
  weight: 1
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: '.spec.containers.[].image | select(startswith("registry.example/") | not)', operator: Exists}
    - {key: '.status.containerStatuses.[].state.waiting.reason', operator: DoesNotExist}
  next:
    event: {type: Warning, reason: Failed, message: "Failed to pull image: not found"}
    statusTemplate: |
      phase: Pending
      startTime: {{ Now | Quote }}
      conditions:
      - {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ Now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        imageID: ""
        ready: false
        restartCount: 0
        state:
          waiting: {reason: ImagePullBackOff, message: Back-off pulling image}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: crash-loop}
spec:
  weight: 1
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: '.spec.containers.[].env.[].value | select(startswith("postgre://"))', operator: Exists}
    - {key: '.status.containerStatuses.[].state.waiting.reason', operator: DoesNotExist}
  next:
    event: {type: Warning, reason: BackOff, message: Back-off restarting failed container}
    statusTemplate: |
      phase: Running
      startTime: {{ Now | Quote }}
      conditions:
      - {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ Now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        imageID: ""
        ready: false
        restartCount: 2
        lastState:
          terminated: {exitCode: 2, reason: Error, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}}
        state:
          waiting: {reason: CrashLoopBackOff, message: Back-off restarting failed container}
      {{ end }}
---
# It stays so: this outweighs the stage that makes Pods ready.
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: stays}
spec:
  weight: 1
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: '.status.containerStatuses.[].state.waiting.reason', operator: In, values: [ImagePullBackOff, CrashLoopBackOff]}
  delay: {durationMilliseconds: 36000000}
  next:
    statusTemplate: |
      phase: Pending
`
