package tasks_test

// shop has the tasks. The numbers are those of a trial on a live cluster.
var shop = []task{
	{
		number: "1", asks: "What changed in the shop around the alert?",
		replay: "log -n shop --around {broken} --within 45s --verbose=false",
		want: []string{
			"ConfigMap shop/settings kubectl-edit data.color blue → green",
			"Deployment shop/web kubectl/scale spec.replicas 3 → 5",
			"Deployment shop/web kubectl-set spec.template.spec.containers[web].image registry.example/web:v1 → registry.example/web:v2-broken",
			"Deployment shop/web kubectl ", "spec.template.spec.containers[web].image registry.example/web:v2-broken → registry.example/web:v1",
			"more:", "-v shows them",
		},
		most: 40,
	},
	{
		number: "2", asks: "Who scaled web, and from what?",
		replay: "log deploy/web -n shop --path spec.replicas --type Updated",
		want:   []string{"Updated kubectl/scale spec.replicas 3 → 5"},
		most:   3,
	},
	{
		number: "3", asks: "The Pod that crashed is gone: how did it end?",
		replay: "story pod/report -n billing -v",
		want: []string{
			"Pod report created", "lastState.terminated.exitCode=137 [kubelet/status]", "lastState.terminated.reason=OOMKilled", "restartCount 0 → 1",
			"Warning BackOff: Back-off restarting failed container", "restartCount 1 → 2", "CrashLoopBackOff", "deleted",
		},
	},
	{
		number: "3", asks: "… when, and how do I see it?",
		replay: "get pod/report -n billing",
		want:   []string{`pods "report" not found: deleted at `, `"replay get pods/report -n billing --last" shows its last state`}, code: 1,
	},
	{
		number: "3", asks: "… its last state, and its node?",
		replay: "get pod/report -n billing --last -o wide",
		want:   []string{"report 0/1 Terminating 2", "node-000"},
		most:   2,
	},
	{
		number: "3", asks: "… its Events?",
		replay: "get events -n billing --field-selector involvedObject.name=report --at {report-ends}",
		want:   []string{"Warning BackOff pod/report Back-off restarting failed container"},
		most:   2,
	},
	{
		number: "4", asks: "What is different in the ConfigMap between two instants?",
		replay: "diff cm/settings -n shop --from {installed} --to {alert}",
		want:   []string{"~ ConfigMap shop/settings", "data.color blue → green", `data.limit "10" → "20"`, "1 changed"},
		most:   4,
		code:   1,
	},
	{
		number: "4b", asks: "Who set which key of it?",
		replay: "blame cm/settings -n shop",
		want:   []string{"kubectl-client-side-apply data:", "kubectl-edit color: green", `kubectl-patch limit: "20"`, "kubectl-client-side-apply kind: ConfigMap"},
	},
	{
		number: "5", asks: "Which image had each Deployment at the alert?",
		replay: "get deploy -A --at {alert} -o wide",
		want: []string{
			"billing ledger 3/3", "registry.example/ledger:1.0", "legacy old", "registry.example/old:1",
			"shop checkout", "registry.example/checkout:1.0", "shop web", "registry.example/web:v2-broken",
		},
		most: 5,
	},
	{
		number: "6", asks: "Which Pods were on the Node when it was not Ready?",
		replay: "get pods -A --index node=node-001 --at {not-ready}",
		want:   []string{"NAMESPACE NAME READY STATUS", "Running"},
		never:  []string{"No resources found"},
	},
	{
		number: "6b", asks: "Which Pods did the drain take from the Node?",
		replay: "log pods -A --index node=node-003 --since {cordoned} --until {uncordoned}",
		want:   []string{"Updated Pod billing/ledger-", "- evicted", "Updated Pod shop/web-", "- evicted", "Deleted Pod", "Deleted Pod"},
	},
	{
		number: "6b", asks: "… and where did those of web go?",
		replay: "log deploy/web -n shop --owned --since {cordoned} --until {uncordoned} -v",
		want:   []string{"Pod shop/web-", "evicted", "Added Pod shop/web-", "kube-controller-manager created", "bound to node-00"},
		never:  []string{"bound to node-003"},
	},
	{
		number: "6c", asks: "Who cordoned the Node, and who took that back?",
		replay: "log node/node-003 --path spec.unschedulable --type Updated",
		want:   []string{"Updated kubectl + spec.unschedulable=true", "Updated kubectl? - spec.unschedulable=true"},
		most:   4,
	},
	{
		number: "6c", asks: "… and its taint?",
		replay: "log node/node-002 --path spec.taints --type Updated",
		want:   []string{"Updated kubectl-taint + spec.taints", "maint", "Updated kubectl-taint? - spec.taints"},
		most:   4,
	},
	{
		number: "7", asks: "How did the bad rollout go?",
		replay: "story deploy/web -n shop --since {installed} --until {cordoned} --verbose=false",
		want: []string{
			"Deployment web spec.replicas 3 → 5 [kubectl/scale]",
			"Deployment web spec.template.spec.containers[web].image registry.example/web:v1 → registry.example/web:v2-broken [kubectl-set]",
			"ReplicaSet web-", "created", "Pod web-", "created", `Warning Failed: Failed to pull image "registry.example/web:v2-broken": not found`, "more:",
			"Rollouts of Deployment shop/web:",
			"revision 2: spec.containers[web].image registry.example/web:v1 → registry.example/web:v2-broken [kubectl-set]",
			"ImagePullBackOff of 3 Pods", "ProgressDeadlineExceeded of Deployment web", "undone after",
			"revision 3: spec.containers[web].image registry.example/web:v2-broken → registry.example/web:v1 [kubectl]", "done after",
		},
	},
	{
		number: "8", asks: "Was anything not recorded around the alert?",
		replay: "coverage --since {installed} --until {cordoned} --fail-if-incomplete --incomplete",
		want:   []string{"Complete: "},
		most:   1,
	},
	{number: "9", asks: "Has anybody changed the record?", replay: "verify", want: []string{"verify found no fault in the record."}},
	{
		number: "9", asks: "… since its head was kept elsewhere?",
		replay: "verify --head {head}", want: []string{"Commit", "has this digest."},
	},
	{
		number: "10", asks: "Which rights were granted and withdrawn, to whom?",
		replay: "log rolebinding,clusterrolebinding -A --since {installed} --type Added,Deleted",
		want: []string{
			"Added RoleBinding billing/reader kubectl-create created: Role reader for User dave",
			"Added ClusterRoleBinding dave-admin kubectl-create created: ClusterRole cluster-admin for User dave",
			"Deleted ClusterRoleBinding dave-admin - deleted: ClusterRole cluster-admin for User dave; last proved writer kubectl-create",
			"Deleted RoleBinding billing/reader - deleted: Role reader for User dave; last proved writer kubectl-create",
		},
		most: 5,
	},
	{
		number: "11", asks: "Give me the shop as it was, to apply elsewhere.",
		replay: "snapshot -n shop --at {installed} --for-apply",
		want:   []string{"kind: ConfigMap", "name: settings", "kind: Service", "name: web", "kind: Deployment", "name: checkout", "name: web", "kind: Certificate"},
		never:  []string{"uid:", "managedFields:", "resourceVersion:", "correct-horse"},
	},
	{
		number: "12", asks: "Who deleted the Job?",
		replay: "log job/migrate -n shop",
		want:   []string{"Added kubectl-create created", "Failed", "Deleted - deleted"},
	},
	{
		number: "12", asks: "… by which user?",
		elsewhere: "audit events: a watch tells no user; the API server's audit log of the scene names alice",
	},
	{
		number: "13", asks: "What is different in the whole cluster, without noise?",
		replay: "diff -A --from {installed} --to {alert} -o stat",
		want:   []string{"deployments.apps 0 0 2"},
		code:   1,
	},
	{
		number: "14", asks: "What changes now?",
		elsewhere: "log --follow; a recording has ended: TestAFollowedLogEndsWithAnInterrupt follows a record that grows",
	},
	{
		number: "15", asks: "How often did each Pod restart, by hour?",
		sql: `SELECT name || ' ' || sum((new #>> '{}')::int - (old #>> '{}')::int) FROM kuberewind.changes
			WHERE kind = 'Pod' AND path ~ '/restartCount$' AND op = 'replace' GROUP BY name, date_trunc('hour', observed_at)`,
		want: []string{"report 2"},
		most: 1,
	},
	{
		number: "16", asks: "Run my own informer over a past stretch.",
		elsewhere: "history.NewListWatch, in Go: tests of package history run client-go's informers with it",
	},
	{
		number: "17", asks: "How many deltas a minute, for a panel?",
		sql: `SELECT (count(*) > 500)::text FROM kuberewind.deltas WHERE source = 'watch'`, want: []string{"true"},
	},
	{
		number: "18", asks: "What did one manager write, for jq?",
		replay: "log deploy/web -n shop -o json --manager kubectl-set --type Updated",
		want:   []string{`"manager":"kubectl-set"`, "web:v2-broken", `"manager":"kubectl-set"`, "LOG_LEVEL", `"manager":"kubectl-set"`, "web:v3"},
		most:   4,
	},
	{
		number: "19", asks: "Does it work as kubectl kuberewind?",
		kubectl: "kuberewind get deploy -n shop --at {alert}", want: []string{"NAME READY", "checkout 2/2", "web 4/5"}, most: 3,
	},
	{number: "20", asks: "What does the shell complete of a type?", replay: "__complete get dep", want: []string{"deployments Deployment"}, most: 2},
	{
		number: "20", asks: "… of a name that lives no longer?",
		replay: "__complete get deploy -n legacy --at {alert} o", want: []string{"old"}, most: 2,
	},
	{
		number: "20", asks: "… of a path?",
		replay: "__complete log deploy/web -n shop --path spec.re", want: []string{"spec.replicas"},
	},
	{number: "21", asks: "A type that I mistyped?", replay: "get podz", want: []string{"did you mean pods?"}, code: 1},
	{
		number: "22", asks: "When was it, in the zone of the office?",
		replay: "log cm/settings -n shop --since {date} --manager kubectl-edit", want: []string{"Updated kubectl-edit data.color blue → green"},
	},
	{
		number: "23", asks: "What did the columns of a custom resource say then?",
		replay: "get cert -n shop --at {alert}", want: []string{"NAME READY web yes"}, most: 2,
	},
	{number: "23", asks: "… and now?", replay: "get cert -n shop --at now", want: []string{"NAME ISSUER web letsencrypt"}, most: 2},
	{
		number: "24", asks: "What was in the namespace that was deleted?",
		replay: "get all,cm -n legacy --at {alert}",
		want:   []string{"pod/old-", "1/1 Running", "deployment.apps/old 1/1", "replicaset.apps/old-", "configmap/old 1"},
	},
	{
		number: "24", asks: "Who deleted the namespace?",
		replay: "log ns/legacy", want: []string{"Added kubectl-create created", "Updated - + deletionTimestamp", "Deleted - "},
	},
	{
		number: "24", asks: "… by which user?",
		elsewhere: "audit events: a watch tells no user, so no delete has a proved writer; the API server's audit log of the scene names bob",
	},
	{number: "25", asks: "Is it readable at 80 columns?", elsewhere: "a terminal: no answer of the record, but how it is printed"},
	{
		number: "26", asks: "Does a recorder that was stopped miss anything?",
		elsewhere: "a recorder that runs: tests of test/system and test/quiet stop and kill it",
	},
}
