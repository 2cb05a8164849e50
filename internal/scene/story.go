package scene

import (
	"strings"
	"time"
)

// words are the arguments of a command without quoting; a word has no blanks.
func words(line string) []string { return strings.Fields(line) }

func kubectl(at time.Duration, actor, line string, awaits ...string) Step {
	return Step{At: at, Actor: actor, Kubectl: words(line), Awaits: allWords(awaits)}
}

func input(at time.Duration, actor, line, text string, awaits ...string) Step {
	step := kubectl(at, actor, line, awaits...)
	step.Input = text
	return step
}

func request(at time.Duration, actor string, r Request) Step {
	return Step{At: at, Actor: actor, Request: &r}
}

func awaiting(step Step, awaits ...string) Step {
	step.Awaits = allWords(awaits)
	return step
}

func allWords(lines []string) (all [][]string) {
	for _, line := range lines {
		all = append(all, words(line))
	}
	return all
}

const webReady = "rollout status deploy/web -n shop --timeout=90s"

// Story returns the steps, in order.
func Story() []Step {
	var all []Step
	for _, part := range [][]Step{setUp(), badRollout(), nodes(), rights(), failures(), traces(), ends()} {
		all = append(all, part...)
	}
	return all
}

func at(minutes, seconds int) time.Duration {
	return time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second
}

// setUp is the morning: the resources of two teams, and those of other users.
func setUp() []Step {
	return []Step{
		kubectl(at(0, 0), Bob, "create namespace shop"),
		kubectl(at(0, 4), Bob, "create namespace billing"),
		kubectl(at(0, 8), Alice, "create namespace legacy"),
		input(at(0, 15), Alice, "apply -f -", shop, webReady),
		request(at(0, 25), ArgoCD, Request{Agent: "argocd-application-controller/v3.1", Manager: "argocd-controller", Verb: Apply, Object: checkout}),
		request(at(0, 30), Helm, Request{Agent: "Helm/3.19.0", Verb: Create, Object: ledger}),
		input(at(0, 40), Carol, "apply -n billing -f -", report),
		input(at(0, 45), Alice, "apply -n legacy -f -", old),
		input(at(0, 50), Bob, "create -f -", certificates("Ready"), "wait crd/certificates.example.com --for=condition=Established --timeout=60s"),
		input(at(1, 0), Bob, "create -n shop -f -", certificate),
		kubectl(at(1, 10), Carol, `patch configmap/settings -n shop --type=merge -p={"data":{"limit":"20"}}`),
		kubectl(at(1, 20), Bob, `patch secret/login -n shop -p={"stringData":{"password":"battery-horse-staple-correct"}}`),
		kubectl(at(1, 30), Carol, "autoscale deploy/ledger -n billing --min=3 --max=5",
			"wait deploy/ledger -n billing --for=jsonpath={.spec.replicas}=3 --timeout=90s"),
	}
}

// badRollout is the alert: a setting, a scale, an image that does not exist, and the undo, all within 90 seconds.
func badRollout() []Step {
	return []Step{
		input(at(2, 0), Carol, "edit configmap/settings -n shop", "s/color: blue/color: green/"),
		kubectl(at(2, 10), Alice, "scale deploy/web -n shop --replicas=5", webReady),
		kubectl(at(2, 30), CD, "set image deploy/web -n shop web=registry.example/web:v2-broken",
			"wait deploy/web -n shop --for=jsonpath={.status.unavailableReplicas}=3 --timeout=90s",
			"wait deploy/web -n shop --for=condition=Progressing=false --timeout=90s"),
		kubectl(at(3, 0), Alice, "annotate deploy/web -n shop incident=42"),
		kubectl(at(3, 10), Alice, "rollout undo deploy/web -n shop", webReady),
	}
}

// nodes is upkeep: a drain, a taint, and a Node that fails.
func nodes() []Step {
	return []Step{
		kubectl(at(4, 10), Bob, "cordon node-003"),
		kubectl(at(4, 20), Bob, "drain node-003 --force --ignore-daemonsets --delete-emptydir-data --timeout=90s", webReady),
		kubectl(at(5, 0), Bob, "uncordon node-003"),
		kubectl(at(5, 10), Bob, "taint node node-002 maint=yes:NoSchedule"),
		kubectl(at(5, 30), Bob, "taint node node-002 maint-"),
		kubectl(at(5, 40), Bob, "label node node-001 power=off", "wait node/node-001 --for=condition=Ready=false --timeout=60s"),
		kubectl(at(6, 10), Bob, "label node node-001 power-", "wait node/node-001 --for=condition=Ready --timeout=60s"),
	}
}

// rights are granted and revoked.
func rights() []Step {
	return []Step{
		kubectl(at(6, 15), Carol, "create role reader -n billing --verb=get,list --resource=configmaps"),
		kubectl(at(6, 20), Carol, "create rolebinding reader -n billing --role=reader --user=dave"),
		kubectl(at(6, 25), Bob, "create clusterrolebinding dave-admin --clusterrole=cluster-admin --user=dave"),
		kubectl(at(6, 40), Bob, "delete clusterrolebinding dave-admin"),
		kubectl(at(6, 45), Carol, "delete rolebinding reader -n billing"),
	}
}

// failures are a Job that fails, a Pod that is killed, and a namespace that is deleted.
func failures() []Step {
	return []Step{
		input(at(6, 50), CD, "create -n shop -f -", migrate, "wait job/migrate -n shop --for=condition=Failed --timeout=90s"),
		kubectl(at(7, 20), Alice, "delete job migrate -n shop --wait=false"),
		awaiting(request(at(7, 30), Kubelet, Request{Agent: "kubelet/v1.37.1", Verb: Patch, Object: killed, Status: true}),
			"wait pod/report -n billing --for=jsonpath={.status.containerStatuses[0].restartCount}=2 --timeout=60s"),
		kubectl(at(7, 40), Carol, "delete pod report -n billing"),
		kubectl(at(7, 50), Bob, "delete namespace legacy --timeout=90s"),
	}
}

// traces are writes whose field manager is hard to prove.
func traces() []Step {
	return []Step{
		kubectl(at(8, 0), Alice, "label deploy/web -n shop tier=front"),
		kubectl(at(8, 5), Alice, "label deploy/web -n shop tier-"),
		kubectl(at(8, 10), Alice, "annotate deploy/web -n shop incident-"),
		kubectl(at(8, 15), Alice, "set env deploy/web -n shop LOG_LEVEL=debug", webReady),
		kubectl(at(8, 25), Alice, "set env deploy/web -n shop LOG_LEVEL-", webReady),
		input(at(8, 35), Alice, "apply -n shop -f -", scratch, "rollout status deploy/scratch -n shop --timeout=90s"),
		kubectl(at(8, 40), Alice, "scale deploy/scratch -n shop --replicas=2", "rollout status deploy/scratch -n shop --timeout=90s"),
		kubectl(at(8, 45), Alice, "set image deploy/scratch -n shop app=registry.example/scratch:2", "rollout status deploy/scratch -n shop --timeout=90s"),
		kubectl(at(8, 50), Bob, "delete deploy scratch -n shop"),
		kubectl(at(8, 55), Bob, `patch deploy/web -n shop --type=json -p=[{"op":"remove","path":"/metadata/labels/team"}]`),
	}
}

// ends are objects that are created again, and a definition that changes.
func ends() []Step {
	return []Step{
		kubectl(at(9, 0), Carol, "delete configmap limits -n billing"),
		kubectl(at(9, 5), Carol, "create configmap limits -n billing --from-literal=max=20"),
		request(at(9, 10), Helm, Request{Agent: "Helm/3.19.0", Verb: Patch, Object: ledgerUpgrade}),
		input(at(9, 15), Bob, "replace -f -", certificates("Issuer")),
		request(at(9, 20), ArgoCD, Request{Agent: "argocd-application-controller/v3.1", Manager: "argocd-controller", Verb: Apply, Object: strings.ReplaceAll(checkout, "checkout:1.0", "checkout:1.1")}),
		kubectl(at(9, 30), CD, "set image deploy/web -n shop web=registry.example/web:v3", webReady),
		// By then the server has begun the storage of the changed definition.
		kubectl(at(9, 50), Bob, "annotate certificate/web -n shop renew=now"),
	}
}
