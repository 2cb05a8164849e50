package postgres

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A fleet is a set of pods of about 5 KB each, whose status changes.
type fleet struct {
	stream  *Stream
	pods    []*object
	rv      int
	version int
}

func newFleet(t testing.TB, st *Stream, pods int) *fleet {
	f := &fleet{stream: st, rv: 1000}
	for i := range pods {
		f.pods = append(f.pods, &object{namespace: fmt.Sprintf("team-%d", i%20), name: fmt.Sprintf("web-6d4b75cb6d-%05d", i), uid: types.UID(newUID())})
		f.render(t, f.pods[i])
	}
	return f
}

// render makes the next version of a pod.
func (f *fleet) render(t testing.TB, o *object) {
	f.rv++
	f.version++
	o.rv = fmt.Sprint(f.rv)
	doc, err := patch.Canonical(fmt.Appendf(nil, podText, o.name, o.namespace, o.rv, o.uid, f.version, f.version%60, f.version%7))
	require.NoError(t, err)
	o.doc = doc
}

// updates returns n updates, of one pod after the other.
func (f *fleet) updates(t testing.TB, n int) []Item {
	items := make([]Item, n)
	for i := range items {
		next := *f.pods[f.version%len(f.pods)]
		f.render(t, &next)
		items[i] = watched(f.stream, delta.Updated, &next)
		items[i].Observed, items[i].Version = noon, "v1"
	}
	return items
}

func (f *fleet) creations() []Item {
	items := make([]Item, len(f.pods))
	for i, o := range f.pods {
		items[i] = listed(f.stream, delta.SourceList, o)
		items[i].Observed, items[i].Version = noon, "v1"
	}
	return items
}

var podText = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"resourceVersion":%q,"uid":%q,
"creationTimestamp":"2026-03-01T10:00:00Z","generateName":"web-6d4b75cb6d-","labels":{"app":"web","pod-template-hash":"6d4b75cb6d","team":"payments"},
"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web-6d4b75cb6d","uid":"5c1fd7c4-5ad4-4a35-8f23-6d7ad21b63b0"}],
"managedFields":[` + managed("kube-controller-manager", "metadata") + `,` + managed("kubelet", "status") + `]},
"spec":{"containers":[` + container("web") + `,` + container("proxy") + `],"dnsPolicy":"ClusterFirst","nodeName":"node-17","restartPolicy":"Always","schedulerName":"default-scheduler",
"serviceAccountName":"web","terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}],
"volumes":[{"name":"kube-api-access-abcde","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}]}}]},
"status":{"observedGeneration":%d,"conditions":[` + condition("Initialized") + `,` + condition("Ready") + `,` + condition("ContainersReady") + `,` + condition("PodScheduled") + `],
"containerStatuses":[{"containerID":"containerd://0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0","image":"registry.example.com/payments/web:1.24.7","lastState":{},"name":"web","ready":true,"restartCount":%d,"started":true,"state":{"running":{"startedAt":"2026-03-01T10:00:05Z"}}}],
"hostIP":"10.0.0.17","phase":"Running","podIP":"10.244.3.%d","podIPs":[{"ip":"10.244.3.17"}],"qosClass":"Burstable","startTime":"2026-03-01T10:00:01Z"}}`

func condition(kind string) string {
	return `{"lastProbeTime":null,"lastTransitionTime":"2026-03-01T10:00:10Z","observedGeneration":1,"status":"True","type":"` + kind + `"}`
}

func managed(manager, field string) string {
	var fields strings.Builder
	for i := range 18 {
		fmt.Fprintf(&fields, `"f:%s%c":{".":{},"f:lastTransitionTime":{},"f:status":{}},`, field, 'a'+i)
	}
	return `{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:` + field + `":{` + strings.TrimSuffix(fields.String(), ",") + `}},"manager":"` + manager + `","operation":"Update","time":"2026-03-01T10:00:12Z"}`
}

func container(name string) string {
	return `{"env":[{"name":"A","value":"1"},{"name":"DATABASE_HOST","value":"db.payments.svc.cluster.local"}],"image":"registry.example.com/payments/` + name + `:1.24.7","imagePullPolicy":"IfNotPresent","name":"` + name + `",
"livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],
"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
"volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-abcde","readOnly":true}]}`
}

const (
	benchPods  = 2000
	benchBatch = 1000
)

func BenchmarkEncode(b *testing.B) {
	r := record(b, newDatabase(b))
	f := newFleet(b, r.pods(), benchPods)
	r.commit(f.creations()...)
	b.ReportMetric(float64(len(f.pods[0].doc)), "bytes/object")
	var cpu time.Duration
	rows := 0
	b.ResetTimer()
	for n := 0; n < b.N; n += benchBatch {
		b.StopTimer()
		items := f.updates(b, benchBatch)
		before := cpuTime()
		b.StartTimer()
		batch, err := r.sink.Encode(items)
		b.StopTimer()
		require.NoError(b, err)
		cpu += cpuTime() - before
		rows += batch.Rows()
		r.sink.spare.keep(batch)
	}
	b.SetBytes(int64(len(f.pods[0].doc)))
	b.ReportMetric(float64(cpu)/float64(time.Microsecond)/float64(rows), "cpu-µs/row")
}

// BenchmarkEncodeAndCommit encodes one batch while the previous batch is committed.
func BenchmarkEncodeAndCommit(b *testing.B) {
	r := record(b, newDatabase(b))
	f := newFleet(b, r.pods(), benchPods)
	r.commit(f.creations()...)
	var batches [][]Item
	for n := 0; n < b.N; n += benchBatch {
		batches = append(batches, f.updates(b, benchBatch))
	}
	cpu := cpuTime()
	b.ResetTimer()
	encoded := make(chan *Batch)
	group, ctx := errgroup.WithContext(context.Background())
	group.Go(func() error {
		defer close(encoded)
		for _, items := range batches {
			batch, err := r.sink.Encode(items)
			if err != nil {
				return err
			}
			encoded <- batch
		}
		return nil
	})
	group.Go(func() error {
		for batch := range encoded {
			if err := r.sink.Commit(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(b, group.Wait())
	b.StopTimer()
	b.ReportMetric(float64(len(batches)*benchBatch)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(cpuTime()-cpu)/float64(time.Microsecond)/float64(len(batches)*benchBatch), "cpu-µs/row")
}

// cpuTime returns the CPU time that this process has used. Unlike the clock, it does not depend on other processes.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkLoad folds living objects from the record.
func BenchmarkLoad(b *testing.B) {
	r := record(b, newDatabase(b))
	f := newFleet(b, r.pods(), benchPods)
	r.commit(f.creations()...)
	for range 10 {
		r.commit(f.updates(b, benchPods)...)
	}
	b.ResetTimer()
	for b.Loop() {
		r.reopen()
		require.Equal(b, benchPods, r.pods().Known().Len())
	}
	b.ReportMetric(float64(benchPods)*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}

// BenchmarkMemoryOfKnownObjects measures the memory of a living object.
func BenchmarkMemoryOfKnownObjects(b *testing.B) {
	r := record(b, newDatabase(b))
	st := r.pods()
	const objects = 20_000
	f := newFleet(b, st, 1)
	before := heap()
	for i := range objects {
		o := &object{namespace: fmt.Sprintf("team-%d", i%20), name: fmt.Sprintf("web-6d4b75cb6d-%05d", i), uid: types.UID(newUID())}
		f.render(b, o)
		item := watched(st, delta.Added, o)
		item.Observed = noon
		batch, err := r.sink.Encode([]Item{item})
		require.NoError(b, err)
		r.sink.spare.keep(batch)
	}
	packed := 0
	for _, key := range st.Known().ListKeys() {
		packed += len(st.Known().mustGet(key).doc)
	}
	after := heap()
	for b.Loop() {
		runtime.KeepAlive(r)
	}
	b.ReportMetric(float64(after-before)/objects, "bytes/object")
	b.ReportMetric(float64(packed)/objects, "compressed-bytes/object")
	b.ReportMetric(float64(after-before-uint64(packed))/objects, "other-bytes/object")
}

func (k *Known) mustGet(key string) *entry {
	namespace, name := splitKey(key)
	return k.get(namespace, name)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
