package replay_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kubectlsEyes compares replay with kubectl on the cluster that is being recorded, cell by cell.
func kubectlsEyes(t *testing.T, c *cluster) {
	for _, question := range []string{
		"pods -n shop", "pods -n shop -o wide", "po -A", "pods -n shop --show-labels", "pods -n shop -L app,tier", "pods -n shop --no-headers",
		"pod web-1 -n shop", "pod/web-1 pod/web-2 -n shop", "pods -n shop -l app=web", "pods -n shop -l app!=web", "pods -n shop --sort-by=.metadata.name",
		"pods -n shop --sort-by=.spec.nodeName -o wide", "pods -A --field-selector=status.phase=Running", "pods -A --field-selector=spec.nodeName!=worker-1",
		"deployments -n shop", "deploy -n shop -o wide", "deployments.apps -A", "deployments.v1.apps -A",
		"replicasets -n shop", "rs -A -o wide",
		"nodes", "nodes -o wide", "no worker-1 --show-labels", "nodes --field-selector=spec.unschedulable=true",
		"services -n shop", "svc -A -o wide", "svc -A --field-selector=spec.type=ClusterIP",
		"jobs -n shop", "jobs -A -o wide",
		"events -n shop", "events -A -o wide", "events -n shop --field-selector=involvedObject.name=web-2", "events -A --field-selector=type=Warning,reason=BackOff",
		"configmaps -n shop", "cm -A", "cm settings -n shop",
		"widgets -n shop", "wd -A -o wide", "widgets.example.com big -n shop", "widgets -n shop --field-selector=spec.size=large",
		"secrets -n shop", "namespaces", "serviceaccounts -A", "roles -A", "clusterroles system:discovery", "crd", "crd -o wide", "apiservices v1.apps", "priorityclasses", "leases -A",
		"flowschemas", "prioritylevelconfigurations -o wide",
		"statefulsets,daemonsets,cronjobs -n shop", "ingresses,networkpolicies,endpointslices -n shop", "pv,pvc -A", "hpa,pdb -n shop",
		"pods,svc -n shop", "pods,configmaps,deployments -A", "all -n shop", "all -A", "pods,nodes",
		"pods -n shop -o name", "pods,svc -n shop -o name", "pods -n shop -o jsonpath={.items[*].metadata.name}",
		"pods -n shop -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,MISSING:.spec.nowhere",
		"pod web-1 -n shop -o yaml", "pod web-1 -n shop -o json --show-managed-fields", "cm,svc -n shop -o yaml", "pods -A -o go-template={{len(.items)}}",
		"pods -n nowhere", "pods nobody -n shop", "pod/nobody pod/web-1 -n shop", "nobodies", "pods -n shop --field-selector=spec.color=red", "pods -l =a",
		"pods -n shop --sort-by=.spec.nowhere", "pods nobody -n shop --ignore-not-found", "persistentvolumeclaims -n shop", "pods -A web-1",
	} {
		t.Run(question, func(t *testing.T) {
			args := append([]string{"get"}, strings.Fields(question)...)
			c := c.in(t)
			began := time.Now()
			theirs := c.kubectl(args...)
			ours := c.replay(append(args, "--at", "now")...)
			took := time.Since(began)
			require.Equal(t, theirs.stderr, withoutAsides(ours.stderr))
			requireSameText(t, theirs.stdout, ours.stdout, took)
			require.Equal(t, theirs.code, ours.code, ours.stderr)
		})
	}
	t.Run("through a server that others run", func(t *testing.T) { throughAShared(t, c.in(t)) })
}

// withoutAsides removes notes and the progress of a long rebuild. kubectl prints nothing like them.
func withoutAsides(text string) string {
	return regexp.MustCompile(`(?m)^(Note|rebuilding the cluster at .*): .*\n`).ReplaceAllString(text, "")
}

// timeColumns show ages. They may differ, because kubectl runs a moment before replay.
var timeColumns = map[string]bool{"AGE": true, "LAST SEEN": true, "FIRST SEEN": true, "DURATION": true, "RESTARTS": true, "LAST SCHEDULE": true, "CHECKED": true}

// requireSameText compares outputs of two commands that took so long together: tables by their cells, everything else as it is.
func requireSameText(t *testing.T, theirs, ours string, took time.Duration) {
	t.Helper()
	their, our := strings.Split(theirs, "\n\n"), strings.Split(ours, "\n\n")
	if !strings.Contains(theirs, "  ") || strings.HasPrefix(theirs, "{") || strings.HasPrefix(theirs, "apiVersion") {
		require.Equal(t, theirs, ours)
		return
	}
	require.Len(t, our, len(their), "tables; kubectl:\n%s\nreplay:\n%s", theirs, ours)
	for i := range their {
		requireSameTable(t, their[i], our[i], took)
	}
}

func requireSameTable(t *testing.T, theirs, ours string, took time.Duration) {
	t.Helper()
	their, our := cells(theirs), cells(ours)
	require.Len(t, our, len(their), "rows; kubectl:\n%s\nreplay:\n%s", theirs, ours)
	for row := range their {
		require.Len(t, our[row], len(their[row]), "row %d; kubectl:\n%s\nreplay:\n%s", row, theirs, ours)
		for column := range their[row] {
			if their[row][column] != our[row][column] && (timeColumns[their[0][column]] || !isHeader(their[0])) && sameAge(their[row][column], our[row][column], took) {
				continue
			}
			require.Equal(t, their[row][column], our[row][column], "row %d, column %s; kubectl:\n%s\nreplay:\n%s", row, their[0][column], theirs, ours)
		}
	}
}

func isHeader(row []string) bool { return row[0] == strings.ToUpper(row[0]) }

var headings = regexp.MustCompile(`\S+( \S+)*\s*`)

// cells cuts a table where its first line says that columns begin: cells may be empty.
func cells(table string) [][]string {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	var rows [][]string
	starts := headings.FindAllStringIndex(lines[0], -1)
	for _, line := range lines {
		var row []string
		for _, start := range starts {
			from, to := min(start[0], len(line)), min(start[1], len(line))
			if start[1] == len(lines[0]) {
				to = len(line)
			}
			row = append(row, strings.TrimSpace(line[from:to]))
		}
		rows = append(rows, row)
	}
	return rows
}

var ages = regexp.MustCompile(`(\d+[ydhms])+`)

// sameAge accepts that time has passed: as long as kubectl and replay took, with the cut-off rest; or one step of the shown
// time.
func sameAge(theirs, ours string, took time.Duration) bool {
	if ages.ReplaceAllString(theirs, "") != ages.ReplaceAllString(ours, "") {
		return false
	}
	their, our := ages.FindAllString(theirs, -1), ages.FindAllString(ours, -1)
	for i := range their {
		if i >= len(our) {
			return false
		}
		late := seconds(our[i]) - seconds(their[i])
		if late < 0 || late > max(took+time.Second, step(our[i])) {
			return false
		}
	}
	return len(their) == len(our)
}

func seconds(age string) (sum time.Duration) {
	for _, part := range regexp.MustCompile(`(\d+)([ydhms])`).FindAllStringSubmatch(age, -1) {
		n, _ := strconv.Atoi(part[1])
		sum += time.Duration(n) * unit(part[2])
	}
	return sum
}

// step is the smallest unit that an age shows.
func step(age string) time.Duration { return unit(age[len(age)-1:]) }

func unit(name string) time.Duration {
	return map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "y": 365 * 24 * time.Hour}[name]
}
