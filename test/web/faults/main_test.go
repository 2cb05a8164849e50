// Package faults_test draws ten faults in a scene of fifty workloads, and has one script find each of them on the page.
//
// The scene is played on a whole control plane: scheduler, controller manager and kwok. Others write all the time. A recorder follows. Each fault is of
// another kind; the seed says in which order, at which workload and when. At one of them no recorder runs, and the server forgets what was written meanwhile.
//
// find.mjs gets of each fault the knowledge of a user: namespace, workload, symptom and the moment of noticing. It knows no
// kinds of faults. It sees what is visible on the page, presses keys, and names the change that it takes for the cause. The
// judge here compares it with what the API server was sent.
package faults_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

var (
	play   = flag.Bool("play", false, "play the scene on a control plane, which takes minutes (make test-faults)")
	seed   = flag.Uint64("seed", 0, "what is drawn; 0 draws a seed")
	number = flag.Int("number", len(kinds), "how many of the faults are played")
	keep   = flag.String("keep", "", "keep the record and what happened in this folder, which is empty or new")
	from   = flag.String("from", "", "search in what was kept in this folder, and play nothing")
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder", "replay") }

// A trial is one fault: the input of find.mjs, and the truth.
type trial struct {
	Namespace string    `json:"namespace"`
	Workload  string    `json:"workload"`
	Symptom   string    `json:"symptom"`
	Noticed   time.Time `json:"noticed"`

	Truth truth `json:"truth"`
}

// The truth is what the API server was sent, and answered.
type truth struct {
	Of              string `json:"of"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Path            string `json:"path"`
	Lost            bool   `json:"lost"` // no recorder ran
}

func TestTenFaultsAreFoundOnThePage(t *testing.T) {
	if !*play && *from == "" {
		t.Skip("a run of minutes, not a test: make test-faults")
	}
	if os.Getenv("SKIP_WEB") == "1" {
		t.Skip("SKIP_WEB=1")
	}
	database := pgtest.New(t, nil)
	var trials []trial
	if *from != "" {
		trials = restored(t, database)
	} else {
		trials = played(t, database)
	}
	answers := searched(t, database, trials)
	db := database.Connect(t)
	for i := range trials {
		judge(t, db, &trials[i], &answers[i])
	}
}

// played plays the scene.
func played(t *testing.T, database *pgtest.Database) (trials []trial) {
	t.Helper()
	drawn := cmp.Or(*seed, rand.Uint64()%1_000_000)
	fmt.Fprintln(os.Stderr, "the seed is", drawn)
	random := rand.New(rand.NewPCG(drawn, 0))
	w := newWorld(t, random, database)
	fmt.Fprintln(os.Stderr, "fifty workloads run")
	targets, lost := random.Perm(len(w.all)), random.IntN(*number)
	for i, kind := range random.Perm(len(kinds))[:*number] {
		of := w.all[targets[i]]
		w.live(t, time.Duration(2+random.IntN(4))*time.Second, of)
		f := kinds[kind](random, of, len(w.pods(t, of.namespace)))
		if i == lost && i > 0 { // The gap of a quiet resource begins where that was last heard of. It shall touch no other fault.
			w.until(t, "all resources are known up to the fault before", of, func() bool { return w.complete(t, trials[i-1].Noticed) })
		}
		trials = append(trials, w.strike(t, f, of, i == lost))
		fmt.Fprintf(os.Stderr, "%s: %s at %s/%s, lost: %t\n", trials[i].Noticed.Format(time.TimeOnly), f.of, of.namespace, of.name, i == lost)
	}
	w.live(t, time.Second, nil)
	w.caughtUp(t)
	w.recorder.Terminate(t)
	kept(t, database, trials)
	return trials
}

// strike breaks a workload, waits until that is noticed, and mends it.
func (w *world) strike(t *testing.T, f *fault, of *workload, lost bool) trial {
	t.Helper()
	if lost {
		w.caughtUp(t)
		w.recorder.Terminate(t)
		w.live(t, time.Second, of)
	}
	caused := w.do(t, "kubectl-edit", f.cause)
	for _, also := range f.follows {
		w.live(t, time.Second, of)
		w.do(t, "kubectl", also)
	}
	if lost {
		w.live(t, 2*time.Second, of)
		w.forget(t)
		w.record(t)
	}
	w.until(t, f.of+" is seen at "+of.name, of, func() bool { return w.shows(t, f, of) })
	w.live(t, time.Duration(1+w.random.IntN(4))*time.Second, of)
	w.caughtUp(t) // A noticed fault has been shown before.
	noticed := time.Now().UTC()
	w.do(t, "kubectl", f.mend)
	return trial{of.namespace, of.name, f.symptom, noticed, truth{f.of, string(caused.GetUID()), caused.GetResourceVersion(), f.path, lost}}
}

const trialsFile, recordFile = "trials.json", "record.dump"

// kept keeps what was played, if that is wanted.
func kept(t *testing.T, database *pgtest.Database, trials []trial) {
	t.Helper()
	if *keep == "" {
		return
	}
	require.NoError(t, os.MkdirAll(*keep, 0o755))
	text, err := json.MarshalIndent(trials, "", "\t")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(*keep, trialsFile), text, 0o600))
	out, err := exec.Command("pg_dump", "-Fc", "-f", filepath.Join(*keep, recordFile), database.URL()).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// restored gives what an earlier run kept.
func restored(t *testing.T, database *pgtest.Database) (trials []trial) {
	t.Helper()
	// The roles of a record are the server's, and no part of a dump.
	pgtest.New(t, pgtest.EmptyRecord)
	text, err := os.ReadFile(filepath.Join(*from, trialsFile))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &trials))
	out, err := exec.Command("pg_restore", "-d", database.URL(), filepath.Join(*from, recordFile)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return trials
}
