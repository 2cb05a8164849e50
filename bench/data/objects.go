package data

import (
	"fmt"
	"strconv"
	"strings"
)

// The objects are those of a small web service with a proxy beside it, of Jobs, and of their Nodes, as an API server serves
// them.

// A builder puts texts together; the first error stays.
type builder struct{ err error }

// entry is a managedFields entry.
func (b *builder) entry(manager, apiVersion, at, subresource, part string) string {
	text, err := managed(manager, apiVersion, at, subresource, part)
	if b.err == nil {
		b.err = err
	}
	return text
}

const namespaced = `"namespace":"<namespace>",`

// assemble puts an object together. The text place follows the name in its metadata. The rest, without versions and
// managedFields, stands in two parts: before and after the creation time.
func assemble(apiVersion, kind, place, before, after string, managers []string, rest string) string {
	return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"name":"<name>",%s"uid":"<uid>","resourceVersion":"<rv>",%s"creationTimestamp":"<created>",%s"managedFields":[%s]}%s}`,
		kind, apiVersion, place, before, after, strings.Join(managers, ","), rest)
}

const generation = `"generation":"<#generation>",`

func owner(apiVersion, kind string) string {
	return fmt.Sprintf(`"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":"<owner>","uid":"<owneruid>","controller":true,"blockOwnerDeletion":true}]`, apiVersion, kind)
}

func container(name string) string {
	var env strings.Builder
	for _, variable := range []string{"DATABASE_HOST", "LOG_LEVEL", "TRACING_ENDPOINT"} {
		hole, _, _ := strings.Cut(variable, "_")
		fmt.Fprintf(&env, `{"name":%q,"value":"<%s>"},`, variable, strings.ToLower(hole))
	}
	return fmt.Sprintf(`{"name":%q,"image":"registry.example.com/<app>/%s:<tag>","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],
"env":[%s{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],
"resources":{"limits":{"cpu":"2500m","memory":"<memory>"},"requests":{"cpu":"<cpu>","memory":"<memory>"}},
"volumeMounts":[{"name":"config","readOnly":true,"mountPath":"/etc/<app>"},{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
"readinessProbe":{"httpGet":{"path":"/readyz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}`, name, name, env.String())
}

// podSpec is what a template of Pods says; what admission and the scheduler add to a Pod stands before and after.
func podSpec(before, restart, node, after string) string {
	return fmt.Sprintf(`{"volumes":[{"name":"config","configMap":{"name":"<app>","defaultMode":420}}%s],"containers":[%s,%s],"restartPolicy":%q,"terminationGracePeriodSeconds":30,
"dnsPolicy":"ClusterFirst","serviceAccountName":"<app>","serviceAccount":"<app>",%s"securityContext":{},"schedulerName":"default-scheduler"%s}`,
		before, container("web"), container("proxy"), restart, node, after)
}

const (
	tokenVolume = `,{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}`
	tolerations = `,"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],
"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"`
)

// A stage is how far a Pod has come; each has another shape.
type stage int

const (
	podPending stage = iota
	podScheduled
	podCreating
	podRunning // ready or not
	podTerminating
	podEnded // its containers have, and it is not deleted
	podStages
)

func podCondition(kind, status, since, reason string) string {
	if reason != "" {
		reason = fmt.Sprintf(`,"reason":%q,"message":"containers with unready status: [web proxy]"`, reason)
	}
	return fmt.Sprintf(`{"type":%q,"observedGeneration":1,"status":%q,"lastProbeTime":null,"lastTransitionTime":%q%s}`, kind, status, since, reason)
}

func podStatus(s stage) string {
	if s == podPending {
		return `{"phase":"Pending","qosClass":"Burstable"}`
	}
	scheduled := podCondition("PodScheduled", "True", "<bound>", "")
	if s == podScheduled {
		return fmt.Sprintf(`{"phase":"Pending","conditions":[%s],"qosClass":"Burstable"}`, scheduled)
	}
	status, up, since, reason, address, state, started := "<ready>", `"<#up>"`, "<readysince>", "", `"podIP":"<ip>","podIPs":[{"ip":"<ip>"}],`, `{"running":{"startedAt":"<started>"}}`, "true"
	switch s {
	case podCreating:
		status, up, since, reason, address, state, started = "False", "false", "<bound>", "ContainersNotReady", "", `{"waiting":{"reason":"ContainerCreating"}}`, "false"
	case podEnded:
		status, up, reason, started = "False", "false", "PodCompleted", "false"
		state = `{"terminated":{"exitCode":"<#restarts>","reason":"<reason>","startedAt":"<started>","finishedAt":"<readysince>","containerID":"containerd://%s"}}`
	default:
	}
	conditions := []string{podCondition("PodReadyToStartContainers", "True", "<started>", ""), podCondition("Initialized", "True", "<bound>", ""),
		podCondition("Ready", status, since, reason), podCondition("ContainersReady", status, since, reason), scheduled}
	var containers []string
	for _, name := range []string{"proxy", "web"} {
		id, identity := "<id>", ""
		if name == "proxy" {
			id = "<id2>"
		}
		if s != podCreating {
			identity = fmt.Sprintf(`,"imageID":"registry.example.com/<app>/%s@sha256:<digest>","containerID":"containerd://%s"`, name, id)
		}
		containers = append(containers, fmt.Sprintf(`{"name":%q,"state":%s,"lastState":{},"ready":%s,"restartCount":"<#restarts>","image":"registry.example.com/<app>/%s:<tag>"%s,"started":%s,"allocatedResources":{"cpu":"<cpu>","memory":"<memory>"},"resources":{"limits":{"cpu":"2500m","memory":"<memory>"},"requests":{"cpu":"<cpu>","memory":"<memory>"}}}`,
			name, strings.ReplaceAll(state, "%s", id), up, name, identity, started))
	}
	return fmt.Sprintf(`{"observedGeneration":1,"phase":"<phase>","conditions":[%s],"hostIP":"<host>","hostIPs":[{"ip":"<host>"}],%s"startTime":"<bound>","containerStatuses":[%s],"qosClass":"Burstable"}`,
		strings.Join(conditions, ","), address, strings.Join(containers, ","))
}

// pod is the text of a Pod of a ReplicaSet or of a Job.
func (b *builder) pod(s stage, apiVersion, kind, restart string) string {
	labels := `"labels":{"app":"<app>","pod-template-hash":"<hash>","team":"<app>-team"}`
	managers := []string{b.entry("kube-controller-manager", "v1", "<created>", "", fmt.Sprintf(`{"metadata":{"generateName":"x",%s,%s},"spec":%s}`,
		labels, owner(apiVersion, kind), podSpec("", restart, "", "")))}
	if s >= podScheduled {
		managers = append(managers, b.entry("kube-scheduler", "v1", "<bound>", "status", `{"status":{"conditions":[{"type":"PodScheduled"}]}}`))
	}
	node, ending := "", ""
	if s >= podScheduled {
		node = `"nodeName":"<node>",`
	}
	if s >= podCreating {
		managers = append(managers, b.entry("kubelet", "v1", "<changed>", "status", fmt.Sprintf(`{"status":%s}`, podStatus(s))))
	}
	if s == podTerminating {
		ending = `"deletionTimestamp":"<readysince>","deletionGracePeriodSeconds":30,`
	}
	return assemble("v1", "Pod", `"generateName":"<owner>-",`+namespaced, `"generation":1,`, ending+labels+","+owner(apiVersion, kind)+",", managers,
		fmt.Sprintf(`,"spec":%s,"status":%s`, podSpec(tokenVolume, restart, node, tolerations), podStatus(s)))
}

// replicaSet is one with Pods, or one without: numbers that are 0 are left out.
func (b *builder) replicaSet(counts string) string {
	labels := `"labels":{"app":"<app>","pod-template-hash":"<hash>","team":"<app>-team"}`
	annotations := `"annotations":{"deployment.kubernetes.io/desired-replicas":"<replicas>","deployment.kubernetes.io/max-replicas":"<replicas>","deployment.kubernetes.io/revision":"<restarts>"}`
	spec := fmt.Sprintf(`{"replicas":"<#replicas>","selector":{"matchLabels":{"app":"<app>","pod-template-hash":"<hash>"}},"template":{"metadata":{%s},"spec":%s}}`,
		labels, podSpec("", "Always", "", ""))
	status := fmt.Sprintf(`{"replicas":"<#made>",%s"observedGeneration":"<#generation>"}`, counts)
	return assemble("apps/v1", "ReplicaSet", namespaced, generation, labels+","+annotations+","+owner("apps/v1", "Deployment")+",", []string{
		b.entry("kube-controller-manager", "apps/v1", "<started>", "", fmt.Sprintf(`{"metadata":{%s,%s,%s},"spec":%s}`, labels, annotations, owner("apps/v1", "Deployment"), spec)),
		b.entry("kube-controller-manager", "apps/v1", "<changed>", "status", fmt.Sprintf(`{"status":%s}`, status)),
	}, fmt.Sprintf(`,"spec":%s,"status":%s`, spec, status))
}

const replicaCounts = `"fullyLabeledReplicas":"<#made>","readyReplicas":"<#serving>","availableReplicas":"<#serving>",`

// deployment is one with Pods of its newest template, or without.
func (b *builder) deployment(updated string) string {
	labels := `"labels":{"app":"<app>","team":"<app>-team"}`
	spec := fmt.Sprintf(`{"replicas":"<#replicas>","selector":{"matchLabels":{"app":"<app>"}},"template":{"metadata":{%s},"spec":%s},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%%","maxSurge":"25%%"}},"revisionHistoryLimit":2,"progressDeadlineSeconds":600}`,
		labels, podSpec("", "Always", "", ""))
	status := `{"observedGeneration":"<#generation>","replicas":"<#replicas>",` + updated + `"readyReplicas":"<#serving>","availableReplicas":"<#serving>",
"conditions":[{"type":"Available","status":"True","lastUpdateTime":"<created>","lastTransitionTime":"<created>","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."},
{"type":"Progressing","status":"True","lastUpdateTime":"<changed>","lastTransitionTime":"<bound>","reason":"<reason>","message":"<message>"}]}`
	revision := `"annotations":{"deployment.kubernetes.io/revision":"<restarts>"}`
	return assemble("apps/v1", "Deployment", namespaced, generation, labels+","+revision+",", []string{
		b.entry("helm", "apps/v1", "<bound>", "", fmt.Sprintf(`{"metadata":{%s},"spec":%s}`, labels, spec)),
		b.entry("kube-controller-manager", "apps/v1", "<changed>", "status", fmt.Sprintf(`{"metadata":{%s},"status":%s}`, revision, status)),
	}, fmt.Sprintf(`,"spec":%s,"status":%s`, spec, status))
}

const updatedCount = `"updatedReplicas":"<#made>",`

// job is one that runs, or one that has ended, well or not.
func (b *builder) job(status string) string {
	labels := `"labels":{"app":"<app>","batch.kubernetes.io/controller-uid":"<uid>","batch.kubernetes.io/job-name":"<name>"}`
	spec := fmt.Sprintf(`{"parallelism":1,"completions":1,"backoffLimit":0,"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"<uid>"}},"template":{"metadata":{%s},"spec":%s},"ttlSecondsAfterFinished":100,"completionMode":"NonIndexed","suspend":false}`,
		labels, podSpec("", "Never", "", ""))
	return assemble("batch/v1", "Job", namespaced, `"generation":1,`, labels+","+owner("batch/v1", "CronJob")+",", []string{
		b.entry("kube-controller-manager", "batch/v1", "<created>", "", fmt.Sprintf(`{"metadata":{%s,%s},"spec":%s}`, labels, owner("batch/v1", "CronJob"), spec)),
		b.entry("kube-controller-manager", "batch/v1", "<changed>", "status", fmt.Sprintf(`{"status":%s}`, status)),
	}, fmt.Sprintf(`,"spec":%s,"status":%s`, spec, status))
}

const (
	jobRunning = `{"startTime":"<created>","active":1,"terminating":0,"uncountedTerminatedPods":{},"ready":"<#serving>"}`
	jobDone    = `{"conditions":[{"type":"Complete","status":"True","lastProbeTime":"<changed>","lastTransitionTime":"<changed>"}],"startTime":"<created>","completionTime":"<changed>","succeeded":1,"terminating":0,"uncountedTerminatedPods":{},"ready":0}`
	jobFailed  = `{"conditions":[{"type":"Failed","status":"True","lastProbeTime":"<changed>","lastTransitionTime":"<changed>","reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit"}],"startTime":"<created>","failed":1,"terminating":0,"uncountedTerminatedPods":{},"ready":0}`
)

func (b *builder) node() string {
	labels := `"labels":{"beta.kubernetes.io/arch":"amd64","beta.kubernetes.io/os":"linux","kubernetes.io/arch":"amd64","kubernetes.io/hostname":"<name>","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"m6i.2xlarge","topology.kubernetes.io/region":"eu-central-1","topology.kubernetes.io/zone":"eu-central-1a"}`
	annotations := `"annotations":{"node.alpha.kubernetes.io/ttl":"0","volumes.kubernetes.io/controller-managed-attach-detach":"true"}`
	var conditions, images []string
	for _, c := range []string{"MemoryPressure False KubeletHasSufficientMemory", "DiskPressure False KubeletHasNoDiskPressure", "PIDPressure False KubeletHasSufficientPID", "Ready True KubeletReady"} {
		var kind, status, reason string
		_, _ = fmt.Sscan(c, &kind, &status, &reason) // three words
		conditions = append(conditions, fmt.Sprintf(`{"type":%q,"status":%q,"lastHeartbeatTime":"<changed>","lastTransitionTime":"<created>","reason":%q,"message":"kubelet has posted %s status"}`, kind, status, reason, kind))
	}
	for i := range 45 {
		images = append(images, fmt.Sprintf(`{"names":["registry.example.com/service-%d/web@sha256:%s","registry.example.com/service-%d/web:1.24.%d"],"sizeBytes":%d}`, i, digestOf(strconv.Itoa(i)), i, i*3%7, 80_000_000+i*1_234_567))
	}
	// The image that was pulled last has the tag of this version.
	images = append(images, `{"names":["registry.example.com/<app>/web@sha256:<digest>","registry.example.com/<app>/web:<tag>"],"sizeBytes":93126011}`)
	resources := `{"cpu":"8","ephemeral-storage":"83873772Ki","hugepages-1Gi":"0","hugepages-2Mi":"0","memory":"32386536Ki","pods":"110"}`
	status := fmt.Sprintf(`{"capacity":%s,"allocatable":%s,"conditions":[%s],"addresses":[{"type":"InternalIP","address":"<host>"},{"type":"Hostname","address":"<name>"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}},
"nodeInfo":{"machineID":"<hash>","systemUUID":"<uid>","bootID":"<owneruid>","kernelVersion":"6.1.0-28-amd64","osImage":"Debian GNU/Linux 12 (bookworm)","containerRuntimeVersion":"containerd://2.1.4","kubeletVersion":"v1.37.1","kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"},"images":[%s]}`,
		resources, resources, strings.Join(conditions, ","), strings.Join(images, ","))
	return assemble("v1", "Node", "", "", labels+","+annotations+",", []string{
		b.entry("kubelet", "v1", "<created>", "", fmt.Sprintf(`{"metadata":{%s,%s},"spec":{"providerID":"x"}}`, labels, annotations)),
		b.entry("kubelet", "v1", "<changed>", "status", fmt.Sprintf(`{"status":{"conditions":[%s],"images":[]}}`, strings.Join(conditions, ","))),
	}, `,"spec":{"podCIDR":"10.244.0.0/24","podCIDRs":["10.244.0.0/24"],"providerID":"aws:///eu-central-1a/<name>"},"status":`+status)
}

func (b *builder) lease() string {
	spec := `{"holderIdentity":"<name>","leaseDurationSeconds":40,"renewTime":"<started>"}`
	ref := `"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"<name>","uid":"<owneruid>"}]`
	return assemble("coordination.k8s.io/v1", "Lease", namespaced, "", ref+",", []string{
		b.entry("kubelet", "coordination.k8s.io/v1", "<changed>", "", fmt.Sprintf(`{"metadata":{%s},"spec":%s}`, ref, spec)),
	}, `,"spec":`+spec)
}

const eventHost = `,"host":"<node>"`

// event is an Event of a Node, or of another component.
func (b *builder) event(host string) string {
	rest := `"involvedObject":{"kind":"<kind>","namespace":"<namespace>","name":"<owner>","uid":"<owneruid>","apiVersion":"v1","resourceVersion":"<generation>"},"reason":"<reason>","message":"<message>","source":{"component":"<component>"` + host + `},"firstTimestamp":"<created>","lastTimestamp":"<changed>","count":"<#restarts>","type":"<phase>"`
	return assemble("v1", "Event", namespaced, "", "", []string{b.entry("<component>", "v1", "<changed>", "", "{"+rest+"}")},
		","+rest+`,"eventTime":null,"reportingComponent":"<component>","reportingInstance":"<node>"`)
}

func (b *builder) configMap() string {
	var lines strings.Builder
	for i := range 24 {
		fmt.Fprintf(&lines, `<app>.channel.%d.endpoint=https://channel-%d.internal.example.com/v2\n`, i, i)
	}
	data := fmt.Sprintf(`"data":{"application.properties":"%s","checksum":"<id>","release":"<tag>"}`, lines.String())
	labels := `"labels":{"app":"<app>","app.kubernetes.io/managed-by":"Helm"}`
	return assemble("v1", "ConfigMap", namespaced, "", labels+",", []string{b.entry("helm", "v1", "<changed>", "", fmt.Sprintf(`{%s,"metadata":{%s}}`, data, labels))}, ","+data)
}
