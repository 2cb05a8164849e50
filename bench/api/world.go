package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/internal/controlplane"
)

// A world is a control plane, its record, and both servers.
type world struct {
	run      *measure.Run
	pods     []*corev1.Pod // that both serve
	plane    *controlplane.ControlPlane
	recorder *measure.Running
	server   *measure.Running // ours
	served   served
	seq      int64              // the instant that is asked for
	ours     map[string]*target // by protocol
	theirs   map[string]*target
	before   float64 // kube-apiserver's heap without the Pods
	written  int     // how often Pods were changed
}

// inWorld makes the world, uses it, and ends it.
func inWorld(ctx context.Context, run *measure.Run, database *measure.Server, pods int, use func(*world) error) (err error) {
	w := &world{run: run}
	if w.pods, err = generate(run.Report.Seed, pods); err != nil {
		return err
	}
	w.plane, err = controlplane.Start(ctx, controlplane.Options{APIServer: controlplane.APIServerOptions{
		// Its identity is a Lease that it renews every ten seconds.
		Args: []string{"--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false"},
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.plane.Stop()) }()
	if err := w.fill(ctx); err != nil {
		return err
	}
	url, err := database.NewRecord(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(run.Dir, "kuberewind-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := w.record(ctx, url, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.recorder.End()) }()
	if w.server, err = measure.Begin(ctx, serverChild, job{Database: url}, &w.served); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.server.End()) }()
	w.aim()
	return use(w)
}

// listed is the answer of a kube-apiserver whose watch cache is filled.
var listed = question{path: "/api/v1/pods"}

// fill writes the Pods, and returns when the watch cache of kube-apiserver has them.
func (w *world) fill(ctx context.Context) (err error) {
	w.theirs = map[string]*target{}
	config := w.plane.Config()
	for _, protocol := range protocols {
		w.theirs[protocol] = &target{
			name: kubeAPIServer, url: w.plane.APIServer.ProcessURL(), origin: w.plane.APIServer.ProcessURL(), token: config.BearerToken, pid: w.plane.APIServer.PID,
			client: newClient(protocol, config.CAData),
		}
	}
	their := w.theirs[http1]
	if _, err := their.ask(ctx, listed); err != nil {
		return err
	}
	if w.before, err = their.heap(ctx); err != nil {
		return err
	}
	w.run.Say("%s Pods are written", measure.Number(float64(len(w.pods))))
	if err := w.plane.Etcd.Put(ctx, stored(w.pods)); err != nil {
		return err
	}
	_, err = their.ask(ctx, listed) // of the newest version: it waits for the watch cache
	return err
}

// poll is how often the record is looked at.
const poll = 100 * time.Millisecond

// record starts a recorder, and returns when all is on record. Two more writes follow: the instant is after the first lists, and before the end of the record.
func (w *world) record(ctx context.Context, database, dir string) (err error) {
	kubeconfig, err := w.plane.Kubeconfig()
	if err != nil {
		return err
	}
	if w.recorder, err = measure.Begin(ctx, recorderChild, job{Kubeconfig: kubeconfig, Database: database, Dir: dir}, nil); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return errors.Join(err, w.recorder.End())
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	err = await(ctx, conn, `SELECT (SELECT count(*) FROM kuberewind.living) >= $1 AND coalesce((SELECT bool_and(synced) FROM kuberewind.streams), false)`, len(w.pods))
	for _, text := range []string{"the instant", "after it"} {
		if err == nil {
			err = w.step(ctx, conn, text)
		}
	}
	if err != nil {
		return errors.Join(err, w.recorder.End())
	}
	return nil
}

// step makes the end of the record the instant, and goes on by one write.
func (w *world) step(ctx context.Context, conn *pgx.Conn, text string) error {
	if err := conn.QueryRow(ctx, `SELECT max(seq) FROM kuberewind.heads`).Scan(&w.seq); err != nil {
		return err
	}
	if err := w.plane.Etcd.Put(ctx, stored(touched(w.pods[:1], text))); err != nil {
		return err
	}
	return await(ctx, conn, `SELECT max(seq) > $1 FROM kuberewind.heads`, w.seq)
}

// await asks the record until it says yes.
func await(ctx context.Context, conn *pgx.Conn, query string, argument any) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		var yes bool
		if err := conn.QueryRow(ctx, query, argument).Scan(&yes); err != nil || yes {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the recorder has not recorded all: %w", ctx.Err())
		}
	}
}

// touched are Pods with another annotation.
func touched(pods []*corev1.Pod, text string) []*corev1.Pod {
	all := slices.Clone(pods)
	for i := range all {
		all[i] = all[i].DeepCopy()
		all[i].Annotations = map[string]string{"bench": text}
	}
	return all
}

// The ways that are compared.
const (
	kuberewind     = "kuberewind"
	kuberewindCold = "kuberewind, cold"
	kuberewindEnd  = "kuberewind, last instant"
	kubeAPIServer  = "kube-apiserver"
)

// aim gives the clients of our server the instant.
func (w *world) aim() {
	w.ours = map[string]*target{}
	for _, protocol := range protocols {
		w.ours[protocol] = &target{
			name: kuberewind, url: w.served.URL + apiserver.Path(w.served.UID, w.seq), origin: w.served.URL, token: w.served.Token, pid: w.server.PID,
			client: newClient(protocol, w.served.CA),
		}
	}
}

// live is the root at the end of the record.
func (w *world) live() string { return w.served.URL + "/clusters/" + w.served.UID + "/session/live" }

// aimAtEnd gives a client the last instant of the record, which holds the Pods in memory then.
func (w *world) aimAtEnd(ctx context.Context, t *target) error {
	response, err := t.open(ctx, w.live()+"/version", "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	seq, err := strconv.ParseInt(response.Header.Get(apiserver.SeqHeader), 10, 64)
	if err != nil {
		return err
	}
	t.url = w.served.URL + apiserver.Path(w.served.UID, seq)
	_, err = t.ask(ctx, listed)
	return err
}
