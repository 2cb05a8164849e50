package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/view"
	"github.com/kuberewind/kuberewind/internal/selection"
	"github.com/kuberewind/kuberewind/patch"
)

// A form decides which objects a snapshot has, and in which form.
type form struct {
	asIs          bool // exactly as the server served them
	hashedSecrets bool
	view          *view.View
	labels        selection.Selector
	seen          known.Labels
	manifest      *Manifest

	customs, definitions int // number of written objects
}

// of returns the object to write, nil if the snapshot skips it.
func (f *form) of(resource schema.GroupResource, doc patch.Doc) (patch.Doc, error) {
	if !f.seen.Matches(f.labels, doc) {
		return nil, nil
	}
	hashed := resource == secrets && isHashed(doc)
	if hashed {
		f.manifest.HashedSecrets++
	}
	if f.asIs {
		return doc, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(doc); err != nil {
		return nil, err
	}
	reason := f.skipReason(resource, object)
	if reason == "" && hashed && !f.hashedSecrets {
		reason = "Secret, whose values are hashes in the record (use --hashed-secrets to keep it)"
	}
	if reason != "" {
		f.manifest.LeftOut[reason]++
		return nil, nil
	}
	removeServerFields(object)
	adapt(resource, object)
	switch {
	case resource == view.DefinitionsResource:
		f.definitions++
	case f.isCustom(resource):
		f.customs++
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return patch.Canonical(text)
}

// Resources with special treatment.
var (
	secrets         = schema.GroupResource{Resource: "secrets"}
	services        = schema.GroupResource{Resource: "services"}
	serviceAccounts = schema.GroupResource{Resource: "serviceaccounts"}
	configMaps      = schema.GroupResource{Resource: "configmaps"}
	pods            = schema.GroupResource{Resource: "pods"}
	jobs            = schema.GroupResource{Group: "batch", Resource: "jobs"}
	volumes         = schema.GroupResource{Resource: "persistentvolumes"}
	endpoints       = schema.GroupResource{Resource: "endpoints"}
	priorityClasses = schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}
)

// clusterMade lists resources whose objects users do not apply: nodes, controllers and the API server make them.
var clusterMade = map[schema.GroupResource]string{
	{Resource: "events"}: "Event", {Group: "events.k8s.io", Resource: "events"}: "Event",
	{Group: "coordination.k8s.io", Resource: "leases"}:          "Lease",
	{Group: "coordination.k8s.io", Resource: "leasecandidates"}: "LeaseCandidate",
	{Resource: "nodes"}:                                                      "Node",
	{Group: "storage.k8s.io", Resource: "csinodes"}:                          "CSINode",
	{Group: "storage.k8s.io", Resource: "volumeattachments"}:                 "VolumeAttachment",
	{Group: "storage.k8s.io", Resource: "csistoragecapacities"}:              "CSIStorageCapacity",
	{Group: "resource.k8s.io", Resource: "resourceslices"}:                   "ResourceSlice",
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:   "CertificateSigningRequest",
	{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:       "PodCertificateRequest",
	{Group: "internal.apiserver.k8s.io", Resource: "storageversions"}:        "StorageVersion",
	{Group: "networking.k8s.io", Resource: "ipaddresses"}:                    "IPAddress",
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}: "StorageVersionMigration",
	{Group: "resource.k8s.io", Resource: "resourcepoolstatusrequests"}:       "ResourcePoolStatusRequest",
	{Group: "metrics.k8s.io", Resource: "pods"}:                              "PodMetrics",
	{Group: "metrics.k8s.io", Resource: "nodes"}:                             "NodeMetrics",
	{Group: "apiserverinternal.k8s.io", Resource: "storageversions"}:         "StorageVersion",
}

// everywhere lists objects that every cluster has, by resource, namespace and name; * matches any namespace.
var everywhere = map[string]bool{
	"namespaces//default": true, "namespaces//kube-system": true, "namespaces//kube-public": true, "namespaces//kube-node-lease": true,
	"serviceaccounts/*/default": true, "configmaps/*/kube-root-ca.crt": true, "services/default/kubernetes": true,
	"endpoints/default/kubernetes": true, "endpointslices.discovery.k8s.io/default/kubernetes": true,
	"configmaps/kube-system/extension-apiserver-authentication":                   true,
	"configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking": true,
	"servicecidrs.networking.k8s.io//kubernetes":                                  true,
	"priorityclasses.scheduling.k8s.io//system-cluster-critical":                  true,
	"priorityclasses.scheduling.k8s.io//system-node-critical":                     true,
}

// marks lists labels and annotations that identify the maker of an object.
var marks = []struct{ label, annotation, value, maker string }{
	{label: "kubernetes.io/bootstrapping", maker: "the API server"},
	{label: "kube-aggregator.kubernetes.io/automanaged", maker: "the API server"},
	{annotation: "apf.kubernetes.io/autoupdate-spec", value: "true", maker: "the API server"},
	{label: "endpointslice.kubernetes.io/managed-by", value: "endpointslice-controller.k8s.io", maker: "a controller"},
	{label: "endpointslice.kubernetes.io/managed-by", value: "endpointslicemirroring-controller.k8s.io", maker: "a controller"},
	{label: "endpoints.kubernetes.io/managed-by", maker: "a controller"},
	{annotation: "kubernetes.io/config.mirror", maker: "a node"},
	{annotation: "kubernetes.io/service-account.uid", maker: "a controller"}, // tokens of service accounts
	{annotation: "endpoints.kubernetes.io/last-change-trigger-time", maker: "a controller"},
}

// skipReason returns the reason to skip an object, "" to write it.
func (f *form) skipReason(resource schema.GroupResource, o *unstructured.Unstructured) string {
	if kind := clusterMade[resource]; kind != "" {
		return kind + ", which the cluster makes by itself"
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			return o.GetKind() + ", which its controller makes"
		}
	}
	if o.GetDeletionTimestamp() != nil {
		return o.GetKind() + ", which was being deleted"
	}
	if everywhere[resource.String()+"/"+o.GetNamespace()+"/"+o.GetName()] || everywhere[resource.String()+"/*/"+o.GetName()] {
		return o.GetKind() + ", which every cluster has"
	}
	for _, m := range marks {
		value, ok := o.GetLabels()[m.label]
		if m.annotation != "" {
			value, ok = o.GetAnnotations()[m.annotation]
		}
		if ok && (m.value == "" || m.value == value) {
			return fmt.Sprintf("%s, which %s makes", o.GetKind(), m.maker)
		}
	}
	return f.skipReasonByContent(resource, o)
}

func (f *form) skipReasonByContent(resource schema.GroupResource, o *unstructured.Unstructured) string {
	switch resource {
	case jobs:
		for _, c := range slicesAt(o.Object, "status", "conditions") {
			condition, _ := c.(map[string]any)
			if condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed") {
				return "Job, which had ended"
			}
		}
	case pods:
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Succeeded" || phase == "Failed" {
			return "Pod, which had ended"
		}
	case endpoints:
		service, ok := f.view.Objects.Resource(services).Doc(o.GetNamespace() + "/" + o.GetName())
		if _, selects := patch.Get(service, "/spec/selector"); ok && selects {
			return "Endpoints, which a controller makes"
		}
	case secrets:
		if kind, _, _ := unstructured.NestedString(o.Object, "type"); kind == "bootstrap.kubernetes.io/token" {
			return "Secret, which lets nodes join this cluster"
		}
	}
	return ""
}

// removeServerFields removes the fields that only the API server may set, and references by UID to objects of this cluster.
func removeServerFields(o *unstructured.Unstructured) {
	metadata, _ := o.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink", "ownerReferences", "deletionGracePeriodSeconds"} {
		delete(metadata, field)
	}
	delete(o.Object, "status")
	annotations := o.GetAnnotations()
	// A hash in place of a value would mislead the tool that wrote the annotation.
	maps.DeleteFunc(annotations, func(_, value string) bool { return strings.HasPrefix(value, hashPrefix) })
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	delete(annotations, "deployment.kubernetes.io/revision")
	delete(annotations, "deprecated.daemonset.template.generation")
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
	} else {
		o.SetAnnotations(annotations)
	}
}

// adapt removes values that this cluster chose and another cluster would reject.
func adapt(resource schema.GroupResource, o *unstructured.Unstructured) {
	remove := func(fields ...string) { unstructured.RemoveNestedField(o.Object, fields...) }
	switch resource {
	case services:
		if ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); ip != "None" {
			remove("spec", "clusterIP")
			remove("spec", "clusterIPs")
		}
		remove("spec", "healthCheckNodePort")
	case pods:
		remove("spec", "nodeName")
		dropTokenVolumes(o)
	case volumes:
		remove("spec", "claimRef", "uid")
		remove("spec", "claimRef", "resourceVersion")
	case jobs:
		if manual, _, _ := unstructured.NestedBool(o.Object, "spec", "manualSelector"); manual {
			return
		}
		remove("spec", "selector")
		for _, label := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
			remove("spec", "template", "metadata", "labels", label)
			remove("metadata", "labels", label)
		}
	case secrets:
		encodeHashes(o)
	case serviceAccounts:
		remove("secrets") // the snapshot does not apply their tokens
	case view.DefinitionsResource:
		remove("spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
}

// dropTokenVolumes removes the volumes of service account tokens that the API server adds to each Pod.
func dropTokenVolumes(o *unstructured.Unstructured) {
	injected := func(item any) bool {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		return strings.HasPrefix(name, "kube-api-access-")
	}
	filter := func(object map[string]any, field string) {
		if items, ok := object[field].([]any); ok {
			object[field] = slices.DeleteFunc(items, injected)
		}
	}
	spec, _ := o.Object["spec"].(map[string]any)
	filter(spec, "volumes")
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range slicesAt(spec, list) {
			if container, ok := c.(map[string]any); ok {
				filter(container, "volumeMounts")
			}
		}
	}
	// The API server rejects an applied Pod with ephemeral containers.
	delete(spec, "ephemeralContainers")
}

// hashPrefix is the beginning of values that the recorder replaced.
const hashPrefix = "hmac-sha256:"

// isHashed reports whether values of a Secret are hashes.
func isHashed(doc patch.Doc) bool {
	for _, value := range selection.StringsAt(doc, "/data") {
		if strings.HasPrefix(value, hashPrefix) {
			return true
		}
	}
	return false
}

// encodeHashes moves hashes to stringData, because they are not base64.
func encodeHashes(o *unstructured.Unstructured) {
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	text := map[string]any{}
	for key, value := range data {
		if strings.HasPrefix(value, hashPrefix) {
			text[key] = value
			unstructured.RemoveNestedField(o.Object, "data", key)
		}
	}
	if len(text) > 0 {
		o.Object["stringData"] = text
	}
}

func slicesAt(object map[string]any, fields ...string) []any {
	found, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	items, _ := found.([]any)
	return items
}

// first lists the resources that others need, in order. Resources that are in neither list come next; the resources of last
// come at the end.
var first = []schema.GroupResource{
	view.NamespacesResource, view.DefinitionsResource, priorityClasses,
	{Group: "storage.k8s.io", Resource: "storageclasses"}, {Group: "storage.k8s.io", Resource: "csidrivers"},
	{Group: "node.k8s.io", Resource: "runtimeclasses"}, {Group: "networking.k8s.io", Resource: "ingressclasses"},
	{Resource: "resourcequotas"}, {Resource: "limitranges"}, serviceAccounts, secrets, configMaps, volumes, {Resource: "persistentvolumeclaims"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}, {Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, services,
}

// last lists the resources that decide about other objects. If kubectl applied them early, they would reject other objects,
// or wait for objects that do not exist yet.
var last = []schema.GroupResource{
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
}

// order sorts resources for kubectl apply. Without --for-apply, it keeps the order by group and name.
func (f *form) order(resources []schema.GroupResource) []schema.GroupResource {
	if f.asIs {
		return resources
	}
	rank := func(r schema.GroupResource) int {
		if i := slices.Index(first, r); i >= 0 {
			return i
		}
		if i := slices.Index(last, r); i >= 0 {
			return len(first) + 2 + i
		}
		if f.isCustom(r) {
			return len(first) + 1
		}
		return len(first)
	}
	slices.SortStableFunc(resources, func(a, b schema.GroupResource) int { return rank(a) - rank(b) })
	return resources
}

// isCustom reports whether a definition makes a resource.
func (f *form) isCustom(resource schema.GroupResource) bool {
	_, ok := f.view.Objects.Resource(view.DefinitionsResource).Doc(resource.String())
	return ok
}

// directory returns the directory of a resource in a snapshot for kubectl apply: definitions must be established before the
// rest.
func (f *form) directory(resource schema.GroupResource) string {
	switch {
	case f.asIs:
		return ""
	case resource == view.NamespacesResource || resource == view.DefinitionsResource:
		return "1-definitions"
	}
	return "2-objects"
}
