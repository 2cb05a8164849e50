package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

func digest(t *testing.T, s Set) string {
	t.Helper()
	h := sha256.New()
	for e := range s.First() {
		h.Write(e.Object)
	}
	for e, err := range s.Events() {
		require.NoError(t, err)
		fmt.Fprint(h, e.Type, e.At)
		h.Write(e.Object)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	set, err := Generate(Settings{Seed: 7, Live: 400, Events: 5000})
	require.NoError(t, err)
	again, err := Generate(Settings{Seed: 7, Live: 400, Events: 5000})
	require.NoError(t, err)
	other, err := Generate(Settings{Seed: 8, Live: 400, Events: 5000})
	require.NoError(t, err)
	first := digest(t, set)
	require.Equal(t, first, digest(t, set), "gone through twice")
	require.Equal(t, first, digest(t, again))
	require.NotEqual(t, first, digest(t, other))
}

// A follower checks each event as a client would that remembers the earlier events.
type follower struct {
	set    Set
	living map[string]string // UID by resource, namespace and name
	rv     uint64
	at     time.Time
	shared int // deletions at the resource version of the previous deletion
}

func (f *follower) see(t *testing.T, e Event) {
	t.Helper()
	r := f.set.Resources()[e.Resource]
	key := r.Resource + "/" + e.Namespace + "/" + e.Name
	var o struct {
		metav1.TypeMeta
		metav1.ObjectMeta `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(e.Object, &o), string(e.Object))
	require.Equal(t, []string{r.APIVersion(), r.Kind, e.Namespace, e.Name, e.UID, strconv.FormatUint(e.RV, 10)},
		[]string{o.APIVersion, o.Kind, o.Namespace, o.Name, string(o.UID), o.ResourceVersion})
	require.NotEmpty(t, o.ManagedFields)
	uid, lives := f.living[key]
	require.Equal(t, e.Type != watch.Added, lives, "%s of %s", e.Type, key)
	if f.living[key] = e.UID; e.Type == watch.Deleted {
		delete(f.living, key)
	}
	if lives {
		require.Equal(t, uid, e.UID)
	}
	if e.Type == watch.Deleted && e.RV == f.rv {
		f.shared++
	} else if f.rv != 0 {
		require.Greater(t, e.RV, f.rv)
	}
	f.rv = e.RV
	require.False(t, e.At.Before(f.at))
	f.at = e.At
}

func TestAGeneratedClusterIsOneThatAnAPIServerCouldServe(t *testing.T) {
	const live, n = 2000, 40_000
	set, err := Generate(Settings{Seed: 1, Live: live, Events: n})
	require.NoError(t, err)
	f := &follower{set: set, living: map[string]string{}}
	newest := uint64(0)
	for e := range set.First() {
		f.rv = 0 // a list has no such order
		f.see(t, e)
		newest = max(newest, e.RV) // what the list as a whole is at
	}
	told, _ := set.Len()
	require.Len(t, f.living, told)
	f.rv = newest
	count := 0
	for e, err := range set.Events() {
		require.NoError(t, err)
		f.see(t, e)
		require.InDelta(t, live, len(f.living), live/5)
		count++
	}
	require.Equal(t, n, count)
	require.Positive(t, f.shared, "Events expire together")

	d, err := Describe(set)
	require.NoError(t, err)
	var table bytes.Buffer
	require.NoError(t, d.Table(&table))
	t.Log("\n" + table.String())
	for resource, want := range map[int]float64{pods: 0.3, leases: 0.26, events: 0.24, nodes: 0.075, replicaSets: 0.07, deployments: 0.03} {
		require.InDelta(t, want, float64(d.Count(resource))/n, 0.02, set.Resources()[resource].Resource)
	}
}

// No API server would write members that Kubernetes' own types do not know, or have in another order.
func TestObjectsAreWrittenAsAnAPIServerWritesThem(t *testing.T) {
	set, err := Generate(Settings{Seed: 1, Live: 400, Events: 20_000})
	require.NoError(t, err)
	seen := map[string]bool{}
	for e, err := range set.Events() {
		require.NoError(t, err)
		shape := fmt.Sprint(e.Resource, e.Type, bytes.Contains(e.Object, []byte("deletionTimestamp")), bytes.Count(e.Object, []byte(`"type":`)))
		if seen[shape] {
			continue
		}
		seen[shape] = true
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(e.Object, nil, nil)
		require.NoError(t, err)
		again, err := json.Marshal(object)
		require.NoError(t, err)
		requireSameText(t, again, e.Object)
	}
	require.Greater(t, len(seen), 15)
}

// requireSameText shows where two long texts begin to differ.
func requireSameText(t *testing.T, want, got []byte) {
	t.Helper()
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	from := max(same-80, 0)
	require.Equal(t, string(want[from:min(same+200, len(want))]), string(got[from:min(same+200, len(got))]))
}

func TestSettingsThatMakeNoClusterAreRefused(t *testing.T) {
	for _, s := range []Settings{{Live: 1, Events: 1}, {Live: 1000, Events: -1}} {
		_, err := Generate(s)
		require.Error(t, err, s)
	}
}

func BenchmarkGenerate(b *testing.B) {
	set, err := Generate(Settings{Seed: 1, Live: 2000, Events: b.N})
	require.NoError(b, err)
	b.ReportAllocs()
	for e, err := range set.Events() {
		require.NoError(b, err)
		b.SetBytes(int64(len(e.Object)))
	}
}
