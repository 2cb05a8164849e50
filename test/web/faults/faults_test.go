package faults_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A write is one change of one object.
type write struct {
	resource        schema.GroupVersionResource
	namespace, name string // namespace is "" for one of the cluster
	how             types.PatchType
	patch           string
}

// A fault is a change that breaks a workload, and what its users notice.
type fault struct {
	of      string
	cause   write
	path    string // that the cause changes, as the record has it
	symptom string
	follows []write // what makes the fault seen: the next rollout, if the cause stops none that runs
	mend    write
	seen    func(pod) bool // a Pod of the workload that shows it; nil if none does
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	roles       = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	bindings    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	policies    = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	paths       = schema.GroupVersionResource{Group: "net.example", Version: "v1", Resource: "paths"}
	quotas      = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configs     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// one replaces the value at a path.
func one(r schema.GroupVersionResource, namespace, name, path string, value any) write {
	text, err := json.Marshal([]map[string]any{{"op": "replace", "path": path, "value": value}})
	if err != nil {
		panic(err) // the values are texts and numbers
	}
	return write{r, namespace, name, types.JSONPatchType, string(text)}
}

func merge(r schema.GroupVersionResource, namespace, name, patch string) write {
	return write{r, namespace, name, types.MergePatchType, patch}
}

// swapped is a fault that replaces one value, and is mended by the former one.
func swapped(of string, r schema.GroupVersionResource, namespace, name, path string, good, bad any, symptom string) *fault {
	return &fault{of: of, path: path, symptom: symptom, cause: one(r, namespace, name, path, bad), mend: one(r, namespace, name, path, good)}
}

const container = "/spec/template/spec/containers/0"

// kinds draw a fault of each kind for a workload. running is how many Pods its namespace has.
var kinds = []func(r *rand.Rand, w *workload, running int) *fault{
	func(r *rand.Rand, w *workload, _ int) *fault { // an image
		bad := []string{"registry.exmaple/" + w.name + ":v2", "mirror.invalid/" + w.name + ":v3"}[r.IntN(2)]
		f := swapped("image", deployments, w.namespace, w.name, container+"/image", "registry.example/"+w.name+":v1", bad, "The new Pods of "+w.name+" do not start.")
		f.seen = func(p pod) bool { return p.waits == "ImagePullBackOff" }
		return f
	},
	func(r *rand.Rand, w *workload, _ int) *fault { // an environment variable
		good := "postgres://db." + w.namespace + "/" + w.name
		bad := "postgre://db." + w.namespace + []string{"/", ":5433/"}[r.IntN(2)] + w.name
		f := swapped("env", deployments, w.namespace, w.name, container+"/env/0/value", good, bad, "The new Pods of "+w.name+" crash again and again.")
		f.seen = func(p pod) bool { return p.waits == "CrashLoopBackOff" }
		return f
	},
	func(r *rand.Rand, w *workload, _ int) *fault { // rights
		symptom := fmt.Sprintf("%s logs: configmaps is forbidden in the namespace %s.", w.name, w.namespace)
		if r.IntN(2) == 0 {
			return swapped("RBAC", bindings, w.namespace, w.binding, "/subjects/0/name", w.account, "runner-"+w.name, symptom)
		}
		return swapped("RBAC", roles, w.namespace, w.role, "/rules/0/resources/0", "configmaps", "configmap", symptom)
	},
	func(_ *rand.Rand, w *workload, running int) *fault { // a quota, which is noticed at the next rollout
		f := swapped("quota", quotas, w.namespace, w.quota, "/spec/hard/pods", "90", fmt.Sprint(max(1, running-2)), "The rollout of "+w.name+" does not get on.")
		f.follows = []write{merge(deployments, w.namespace, w.name, `{"spec":{"template":{"metadata":{"annotations":{"restarted":"now"}}}}}`)}
		return f
	},
	func(_ *rand.Rand, w *workload, _ int) *fault { // replicas
		return swapped("replicas", deployments, w.namespace, w.name, "/spec/replicas", 1, 0, "Nothing answers at "+w.name+".")
	},
	func(r *rand.Rand, w *workload, _ int) *fault { // a Node
		taint := fmt.Sprintf(`[{"key":"%s","value":"kernel","effect":"NoExecute"}]`, []string{"maintenance", "quarantine"}[r.IntN(2)])
		return &fault{
			of: "node", path: "/spec/taints", symptom: w.name + " has Pods, and none of them runs.", cause: merge(nodes, "", w.node, `{"spec":{"taints":`+taint+`}}`),
			mend: merge(nodes, "", w.node, `{"spec":{"taints":null}}`), seen: func(p pod) bool { return p.unschedulable },
		}
	},
	func(r *rand.Rand, w *workload, _ int) *fault { // a NetworkPolicy
		symptom := fmt.Sprintf("Requests from %s to %s time out.", w.peer, w.name)
		if r.IntN(2) == 0 {
			return swapped("NetworkPolicy", policies, w.namespace, w.policy, "/spec/ingress/0/from/0/podSelector/matchLabels/app", w.peer, w.peer+"-v2", symptom)
		}
		return swapped("NetworkPolicy", policies, w.namespace, w.policy, "/spec/ingress/0/ports/0/port", 80, 8080, symptom)
	},
	func(_ *rand.Rand, w *workload, _ int) *fault { // a Secret
		return swapped("Secret", secrets, w.namespace, w.secret, "/data/password", "Zmlyc3Q=", "c2Vjb25k", w.name+" logs: the password is not accepted.")
	},
	func(r *rand.Rand, w *workload, _ int) *fault { // a definition
		return swapped("CRD", definitions, "", "paths.net.example", "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/weight/maximum", 100, 10+r.IntN(10),
			"A new weight for the path to "+w.name+" is refused: invalid value.")
	},
	func(_ *rand.Rand, w *workload, _ int) *fault { // the selector of a Service
		return swapped("Service selector", services, w.namespace, w.name, "/spec/selector/app", w.name, w.name+"-v2", "The Service "+w.name+" answers 503.")
	},
}
