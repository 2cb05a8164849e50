package main

import (
	"fmt"
	"strings"
)

// The objects look as an API server gives them: what a Pod, Deployment, ConfigMap or Lease of a small web service has, with its
// managedFields, which are a third of it.

func metadata(more, managed string) string {
	return fmt.Sprintf(`"metadata":{"creationTimestamp":"%s","name":"%s","namespace":"%s","resourceVersion":"%s","uid":"%s",%s"managedFields":[%s]}`,
		holeCreated, holeName, holeNamespace, holeRV, holeUID, more, managed)
}

func managedBy(manager, operation, apiVersion, subresource, at, fields string) string {
	if subresource != "" {
		subresource = fmt.Sprintf(`"subresource":%q,`, subresource)
	}
	return fmt.Sprintf(`{"apiVersion":%q,"fieldsType":"FieldsV1","fieldsV1":%s,"manager":%q,"operation":%q,%s"time":"%s"}`,
		apiVersion, fields, manager, operation, subresource, at)
}

// owned gives the fieldsV1 of some fields: each owned whole.
func owned(fields ...string) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = fmt.Sprintf(`"f:%s":{}`, f)
	}
	return strings.Join(all, ",")
}

const ownedContainer = `{".":{},"f:env":{".":{},"k:{\"name\":\"DATABASE_HOST\"}":{".":{},"f:name":{},"f:value":{}}},
"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},
"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},
"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}`

func container(name string) string {
	return fmt.Sprintf(`{"name":%q,"image":"registry.example.com/payments/%s:%s","imagePullPolicy":"IfNotPresent",
"env":[{"name":"DATABASE_HOST","value":"db.payments.svc.cluster.local"}],
"livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],
"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
"volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-x7k2p","readOnly":true}]}`, name, name, holeTag)
}

func podSpec(node string) string {
	return fmt.Sprintf(`"spec":{"containers":[%s,%s],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,%s"preemptionPolicy":"PreemptLowerPriority","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},
"serviceAccount":"web","serviceAccountName":"web","terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}],
"volumes":[{"name":"kube-api-access-x7k2p","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]}`,
		container("web"), container("proxy"), node)
}

func condition(kind, status string, at hole) string {
	return fmt.Sprintf(`{"lastProbeTime":null,"lastTransitionTime":"%s","status":"%s","type":%q}`, at, status, kind)
}

func containerStatus(name string) string {
	return fmt.Sprintf(`{"containerID":"containerd://0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0","image":"registry.example.com/payments/%s:%s","imageID":"registry.example.com/payments/%s@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","lastState":{},"name":%q,"ready":true,"restartCount":%s,"started":true,"state":{"running":{"startedAt":"%s"}}}`,
		name, holeTag, name, name, holeCount.number(), holeSettled)
}

// A podStage is how far a Pod has come; each has another shape.
type podStage int

const (
	podPending podStage = iota
	podScheduled
	podRunning
	podTerminating
	podStages
)

func podText(stage podStage) string {
	owner := fmt.Sprintf(`"generateName":"web-6d4b75cb6d-","labels":{"app":"web","pod-template-hash":"6d4b75cb6d","team":"payments"},
"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web-6d4b75cb6d","uid":"%s"}],`, holeOwner)
	managers := managedBy("kube-controller-manager", "Update", "v1", "", holeCreated.String(), fmt.Sprintf(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},%s},"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},
"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":%s,"k:{\"name\":\"proxy\"}":%s},%s}}`,
		owned("app", "pod-template-hash", "team"), holeOwner, ownedContainer, ownedContainer,
		owned("dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "terminationGracePeriodSeconds")))
	node, status := "", `"phase":"Pending","qosClass":"Burstable"`
	if stage >= podScheduled {
		node = fmt.Sprintf(`"nodeName":"%s",`, holeNode)
		status = fmt.Sprintf(`"conditions":[%s],"phase":"Pending","qosClass":"Burstable"`, condition("PodScheduled", "True", holeSettled))
	}
	if stage >= podRunning {
		conditions := []string{condition("Initialized", "True", holeSettled), condition("Ready", holeReady.String(), holeChanged),
			condition("ContainersReady", holeReady.String(), holeChanged), condition("PodScheduled", "True", holeSettled)}
		status = fmt.Sprintf(`"conditions":[%s],"containerStatuses":[%s,%s],"hostIP":"10.0.0.17","phase":"Running","podIP":"%s","podIPs":[{"ip":"%s"}],"qosClass":"Burstable","startTime":"%s"`,
			strings.Join(conditions, ","), containerStatus("proxy"), containerStatus("web"), holeIP, holeIP, holeCreated)
		seen := make([]string, 0, 3)
		for _, kind := range []string{"ContainersReady", "Initialized", "Ready"} {
			seen = append(seen, fmt.Sprintf(`"k:{\"type\":\"%s\"}":{".":{},%s}`, kind, owned("lastProbeTime", "lastTransitionTime", "status", "type")))
		}
		managers += "," + managedBy("kubelet", "Update", "v1", "status", holeChanged.String(), fmt.Sprintf(`{"f:status":{"f:conditions":{%s},%s,"f:podIPs":{".":{},"k:{\"ip\":\"%s\"}":{".":{},"f:ip":{}}}}}`,
			strings.Join(seen, ","), owned("containerStatuses", "hostIP", "phase", "podIP", "startTime"), holeIP))
	}
	if stage >= podTerminating {
		owner = fmt.Sprintf(`"deletionGracePeriodSeconds":30,"deletionTimestamp":"%s",`, holeChanged) + owner
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod",%s,%s,"status":{%s}}`, metadata(owner, managers), podSpec(node), status)
}

func deploymentText() string {
	more := fmt.Sprintf(`"annotations":{"deployment.kubernetes.io/revision":"%s"},"generation":%s,"labels":{"app":"web","team":"payments"},`, holeGeneration, holeGeneration.number())
	managers := managedBy("helm", "Apply", "apps/v1", "", holeCreated.String(), fmt.Sprintf(`{"f:metadata":{"f:labels":{%s}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{%s}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":%s}}}}}`,
		owned("app", "team"), owned("app", "team"), ownedContainer)) + "," +
		managedBy("kube-controller-manager", "Update", "apps/v1", "status", holeChanged.String(), fmt.Sprintf(`{"f:metadata":{"f:annotations":{".":{},"f:deployment.kubernetes.io/revision":{}}},"f:status":{%s}}`,
			owned("availableReplicas", "conditions", "observedGeneration", "readyReplicas", "replicas", "updatedReplicas")))
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment",%s,"spec":{"progressDeadlineSeconds":600,"replicas":3,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"web"}},"strategy":{"rollingUpdate":{"maxSurge":"25%%","maxUnavailable":"25%%"},"type":"RollingUpdate"},
"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web","team":"payments"}},%s}},
"status":{"availableReplicas":%s,"conditions":[{"lastTransitionTime":"%s","lastUpdateTime":"%s","message":"Deployment has minimum availability.","reason":"MinimumReplicasAvailable","status":"%s","type":"Available"}],"observedGeneration":%s,"readyReplicas":%s,"replicas":3,"updatedReplicas":3}}`,
		metadata(more, managers), podSpec(""), holeCount.number(), holeCreated, holeChanged, holeReady, holeGeneration.number(), holeCount.number())
}

func configMapText() string {
	var lines strings.Builder
	for i := range 18 {
		fmt.Fprintf(&lines, `payments.channel.%d.endpoint=https://channel-%d.internal.example.com/v2\n`, i, i)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap",%s,"data":{"application.properties":"%s","release":"%s","token":"%s"}}`,
		metadata(`"labels":{"app":"web"},`, managedBy("helm", "Update", "v1", "", holeChanged.String(), `{"f:data":{".":{},`+owned("application.properties", "release", "token")+`},"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`)),
		lines.String(), holeTag, holeSecret)
}

func leaseText() string {
	return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease",%s,"spec":{"holderIdentity":"%s","leaseDurationSeconds":40,"leaseTransitions":%s,"renewTime":"%s"}}`,
		metadata("", managedBy("kubelet", "Update", "coordination.k8s.io/v1", "", holeChanged.String(), `{"f:spec":{`+owned("holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime")+`}}`)),
		holeName, holeCount.number(), holeChanged)
}
