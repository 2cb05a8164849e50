package replay_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

type verification struct {
	Holds    bool
	Checked  struct{ Deltas int64 }
	Findings []struct {
		Check, Text string
		Seq         int64
	}
	Resources []struct {
		Group, Resource, Status, Text string
		Objects                       int
		Masked                        bool
	}
}

func (c *cluster) verify(args ...string) (verification, output) {
	c.t.Helper()
	done := c.replay(append([]string{"verify", "-o", "json"}, args...)...)
	var v verification
	require.NoError(c.t, json.Unmarshal([]byte(done.stdout), &v), "%s%s", done.stdout, done.stderr)
	return v, done
}

// theRecordIsProved verifies while the recorder writes. Then it tampers with the record.
func theRecordIsProved(t *testing.T, c *cluster) {
	counter := c.maker.Create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "counter", "namespace": "default"}, "data": map[string]any{"n": "0"},
	}})
	stop := c.count(counter)

	v, done := c.verify("--against-cluster")
	require.Zero(t, done.code, "%s%s", done.stdout, done.stderr)
	require.True(t, v.Holds)
	require.Greater(t, len(v.Resources), 40)
	masked := 0
	for _, r := range v.Resources {
		require.Equal(t, "equal", r.Status, "%s.%s: %s", r.Resource, r.Group, r.Text)
		if r.Masked {
			require.Equal(t, "secrets", r.Resource)
			require.Positive(t, r.Objects)
			masked++
		}
	}
	require.Equal(t, 1, masked, "the key of the hashes is the recorder's")

	v, done = c.verify("--against-cluster", "--redaction-key-file", filepath.Join(c.dataDir, "redaction.key"))
	require.Zero(t, done.code, "%s%s", done.stdout, done.stderr)
	for _, r := range v.Resources {
		require.False(t, r.Masked)
		require.Equal(t, "equal", r.Status, "%s.%s: %s", r.Resource, r.Group, r.Text)
	}
	wrong := filepath.Join(t.TempDir(), "redaction.key")
	require.NoError(t, os.WriteFile(wrong, []byte(strings.Repeat("00", 32)), 0o600))
	done = c.replay("verify", "--against-cluster", "--redaction-key-file", wrong)
	require.Equal(t, 1, done.code)
	require.Contains(t, done.stderr, "is not the recorder's key")
	c.interruptFollowing()
	last := stop()
	c.awaitRecorded(last)

	done = c.replay("log", "configmap/counter", "-n", "default", "--utc")
	require.Zero(t, done.code, done.stderr)
	require.Contains(t, done.stdout, "data.n \"1\" → \"2\"")
	done = c.replay("diff", "--from", "-1h", "-n", "default")
	require.Equal(t, 1, done.code, "%s", done.stderr)
	require.Contains(t, done.stderr, "the record begins at", "an hour ago there was no record: its first instant stands for it")

	c.tamper(last)
}

// count writes to an object until it gets the signal to stop, and then gives the last version.
func (c *cluster) count(object *unstructured.Unstructured) (stop func() *unstructured.Unstructured) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan *unstructured.Unstructured, 1)
	client := c.maker.Resource(object.GroupVersionKind(), object.GetNamespace())
	go func() {
		last := object
		// Often enough that the record always moves, and seldom enough that something else can be done.
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for n := 1; ctx.Err() == nil || n < 4; n++ {
			<-ticker.C
			next := last.DeepCopy()
			next.Object["data"] = map[string]any{"n": strconv.Itoa(n)}
			if next, err := client.Update(context.WithoutCancel(ctx), next, metav1.UpdateOptions{FieldManager: "counter"}); err == nil {
				last = next
			}
		}
		done <- last
	}()
	return func() *unstructured.Unstructured {
		cancel()
		return <-done
	}
}

// tamper changes the last version of an object in the tables.
func (c *cluster) tamper(object *unstructured.Unstructured) {
	t := c.t
	var seq int64
	require.NoError(t, c.pool.QueryRow(t.Context(), `SELECT seq FROM kuberewind.deltas WHERE uid = $1 ORDER BY seq DESC LIMIT 1`, string(object.GetUID())).Scan(&seq))
	// The object as well, if the row happens to be a keyframe: that is what it is folded from then.
	tag, err := c.pool.Exec(t.Context(), `
		UPDATE kuberewind.deltas_data
		SET patch = '[{"op":"replace","path":"/data/n","value":"forged"}]', object = jsonb_set(object::jsonb, '{data,n}', '"forged"')
		WHERE seq = $1`, seq)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())

	v, done := c.verify("--against-cluster")
	require.Equal(t, 1, done.code)
	require.False(t, v.Holds)
	found := map[string]string{}
	for _, f := range v.Findings {
		found[f.Check] = f.Text
		if f.Check == "fold" {
			require.Equal(t, seq, f.Seq)
		}
	}
	require.Contains(t, found["fold"], "default/counter")
	require.Contains(t, found["cluster"], "configmaps default/counter")
	for _, r := range v.Resources {
		want := "equal"
		if r.Resource == "configmaps" {
			want = "different"
		}
		require.Equal(t, want, r.Status, "%s.%s: %s", r.Resource, r.Group, r.Text)
	}

	uid := uidOf(t, c)
	_, err = c.pool.Exec(t.Context(), `UPDATE kuberewind.clusters SET uid = 'another'`)
	require.NoError(t, err)
	done = c.replay("verify", "--against-cluster")
	require.Equal(t, 1, done.code)
	require.Contains(t, done.stderr, "is not the cluster \"test\" of the record")
	_, err = c.pool.Exec(t.Context(), `UPDATE kuberewind.clusters SET uid = $1`, uid)
	require.NoError(t, err)
}

// lockedBuffer can be read while a process writes to it.
type lockedBuffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// interruptFollowing follows what is being written, and ends that with a signal.
func (c *cluster) interruptFollowing() {
	c.t.Helper()
	cmd := exec.Command(recordertest.Program("replay"), "log", "configmaps", "-n", "default", "-f", "--since", "now", "--database", c.database.URL(), "-o", "json")
	cmd.Env = []string{"HOME=" + c.t.TempDir(), "KUBECONFIG=" + c.kubeconfig}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(c.t, err)
	var errOut lockedBuffer
	cmd.Stderr = &errOut
	require.NoError(c.t, cmd.Start())
	lines := bufio.NewScanner(out)
	last := 0.0
	read := func() bool {
		for lines.Scan() {
			var e struct {
				Seq  float64
				Name string
			}
			require.NoError(c.t, json.Unmarshal(lines.Bytes(), &e), "%s", lines.Text())
			if e.Name != "counter" {
				continue // a note
			}
			require.Greater(c.t, e.Seq, last, "each comes once, in order")
			last = e.Seq
			return true
		}
		return false
	}
	// This is more than the objects at its begin: the others have come since.
	for range 100 {
		require.True(c.t, read(), errOut.String())
	}
	require.NoError(c.t, cmd.Process.Signal(os.Interrupt))
	for read() {
	}
	require.NoError(c.t, cmd.Wait(), "an interruption is how following ends: %s", errOut.String())
}
