package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const manifest = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {color: blue, limit: "10"}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: shop}
stringData: {password: correct-horse-battery-staple}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec:
      containers: [{name: app, image: "registry.example/checkout:1.4.0"}]
`

var steps = []struct {
	what string
	args []string
}{
	{"A user deploys,", []string{"apply", "-f", "-"}},
	{"scales,", []string{"-n", "shop", "scale", "deployment/checkout", "--replicas=5"}},
	{"changes an image,", []string{"-n", "shop", "set", "image", "deployment/checkout", "app=registry.example/checkout:1.5.0"}},
	{"edits a ConfigMap,", []string{"-n", "shop", "patch", "configmap", "settings", "--type=merge", "-p", `{"data":{"color":"green"}}`}},
	{"and deletes.", []string{"-n", "shop", "delete", "deployment", "checkout"}},
}

// show plays the scenario and runs the queries that a reader of the demo would run.
func (d *demo) show(ctx context.Context, r *recording) error {
	for _, step := range steps {
		d.begin(step.what)
		if err := d.play(ctx, step.args); err != nil {
			return err
		}
	}
	if err := d.awaitDelete(ctx, r); err != nil {
		return err
	}
	for _, q := range d.questions() { // psql gets the terminal itself, to wrap at its width
		d.begin(q.what)
		d.shown.Say("%s\n", q.sql)
		if err := d.psql(ctx, os.Stdout, "-P", "pager=off", "-P", "format=wrapped", "-c", q.sql); err != nil {
			return err
		}
	}
	return d.rewind(ctx)
}

// rewind shows the past with replay.
func (d *demo) rewind(ctx context.Context) error {
	var before bytes.Buffer
	sql := fmt.Sprintf(`SELECT seq - 1 FROM kuberewind.deltas WHERE cluster = '%s' AND type = 'Deleted' AND kind = 'Deployment' ORDER BY seq LIMIT 1`, d.cluster)
	if err := d.psql(ctx, &before, "-At", "-c", sql); err != nil {
		return err
	}
	d.before = "seq:" + strings.TrimSpace(before.String())
	d.begin("The same as a log, and the Deployment before it was deleted:")
	if err := d.replayed(ctx, "log", "-n", "shop"); err != nil {
		return err
	}
	if err := d.replayed(ctx, "get", "deployments,configmaps", "-n", "shop", "--at", d.before); err != nil {
		return err
	}
	d.begin("kubectl itself, on the cluster as it was then:")
	return d.replayed(ctx, "exec", "--at", d.before, "-n", "shop", "--", d.kubectl, "get", "deployments,replicasets", "--show-labels")
}

// replayed gives replay the terminal itself, because replay fits what it prints to the width of a terminal.
func (d *demo) replayed(ctx context.Context, args ...string) error {
	args = append([]string{"--data-dir", d.dataDir, "--cluster", d.cluster}, args...)
	d.shown.Say("$ %s %s\n", d.replay, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.replay, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	return cmd.Run()
}

func (d *demo) play(ctx context.Context, args []string) error {
	d.shown.Say("$ kubectl %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.kubectl, append([]string{"--kubeconfig", d.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(manifest)
	cmd.Stdout, cmd.Stderr = d.shown, d.shown
	return cmd.Run()
}

// awaitDelete waits until the last change of the scenario is recorded.
func (d *demo) awaitDelete(ctx context.Context, r *recording) error {
	sql := fmt.Sprintf(`SELECT count(*) FROM kuberewind.deltas WHERE cluster = '%s' AND type = 'Deleted' AND kind = 'Deployment'`, d.cluster)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		var out bytes.Buffer
		if err := d.psql(ctx, &out, "-At", "-c", sql); err != nil {
			return err
		}
		if strings.TrimSpace(out.String()) != "0" {
			return nil
		}
		select {
		case <-ticker.C:
		case err := <-r.ended:
			r.ended <- err
			return errors.Join(errors.New("the recorder ended before it had recorded everything"), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *demo) psql(ctx context.Context, out interface{ Write([]byte) (int, error) }, args ...string) error {
	cmd := exec.CommandContext(ctx, d.recorder, append([]string{"psql", "--data-dir", d.dataDir, "--"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, d.shown
	return cmd.Run()
}

type question struct{ what, sql string }

func (d *demo) questions() []question {
	return []question{
		{"Everything that happened in the namespace, as an auditor reads it:", fmt.Sprintf(
			`SELECT seq, to_char(observed_at, 'HH24:MI:SS') AS at, type, kind, name,
  resource_version AS rv, manager
FROM kuberewind.deltas
WHERE cluster = '%s' AND namespace = 'shop' ORDER BY seq`, d.cluster)},
		{"Each change: the path, the old and the new value, the proved field manager:", fmt.Sprintf(
			`SELECT name, path, old, new, manager
FROM kuberewind.changes
WHERE cluster = '%s' AND namespace = 'shop'
  AND path ~ '^/(spec/replicas|spec/template/spec/containers|data/)'
ORDER BY seq`, d.cluster)},
		{"The Secret is on record, its value is not:", fmt.Sprintf(
			`SELECT name, object -> 'data' AS data
FROM kuberewind.deltas
WHERE cluster = '%s' AND kind = 'Secret' AND name = 'login'`, d.cluster)},
		{"The gaps: what the record cannot know, here what came before the first list:", fmt.Sprintf(
			`SELECT cause, count(*) AS streams, sum(appeared) AS objects_found
FROM kuberewind.gaps
WHERE cluster = '%s' GROUP BY cause`, d.cluster)},
	}
}

// next prints the commands that the user can try next.
func (d *demo) next() {
	d.shown.Say(`
==> Done. Everything is stopped; the record stays. Try:

  %[4]s get deployment checkout -n shop -o yaml --at %[5]s --data-dir %[2]s --cluster %[3]s
  %[4]s exec --at %[5]s -n shop --data-dir %[2]s --cluster %[3]s -- %[6]s describe deployment checkout
  %[4]s coverage --data-dir %[2]s --cluster %[3]s
  %[1]s psql --data-dir %[2]s -- -c "SELECT * FROM kuberewind.objects WHERE cluster = '%[3]s' AND namespace = 'shop'"
  %[1]s psql --data-dir %[2]s        # a shell; \d+ kuberewind.deltas explains each column
  %[1]s status --data-dir %[2]s
  make run                    # record the cluster of your own kubeconfig, read-only

==> The same in your browser, at the Deployment before it was deleted.
    There, r shows its story, ← and → step, ? lists all keys:

  %[4]s open deployment/checkout -n shop --at %[5]s --data-dir %[2]s --cluster %[3]s
`, d.recorder, d.dataDir, d.cluster, d.replay, d.before, d.kubectl)
}
