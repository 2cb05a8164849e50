package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kuberewind/kuberewind/bench/data"
)

// livePerPod is how many objects a generated cluster has for each Pod, or a few more.
const livePerPod = 2.3

// running is what those say of themselves that have come to an age.
var running = []byte(`"phase":"Running"`)

// generate gives so many generated Pods that run, in the order of lists.
func generate(seed uint64, number int) ([]*corev1.Pod, error) {
	set, err := data.Generate(data.Settings{Seed: seed, Live: max(int(float64(number)*livePerPod), 100)})
	if err != nil {
		return nil, err
	}
	all := make([]*corev1.Pod, 0, number)
	for e := range set.First() {
		if set.Resources()[e.Resource].Resource != "pods" || !bytes.Contains(e.Object, running) {
			continue
		}
		p := &corev1.Pod{}
		if err := json.Unmarshal(e.Object, p); err != nil {
			return nil, err
		}
		p.ResourceVersion = "" // the server makes it of etcd's revision
		if all = append(all, p); len(all) == number {
			return all, nil
		}
	}
	return nil, fmt.Errorf("only %d of %d Pods were generated", len(all), number)
}

// stored gives Pods as an API server stores them, by their keys in etcd.
func stored(pods []*corev1.Pod) iter.Seq2[string, []byte] {
	s := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	return func(yield func(string, []byte) bool) {
		for _, p := range pods {
			var value bytes.Buffer
			if err := s.Encode(p, &value); err != nil {
				panic(err) // a Pod into memory
			}
			if !yield("/registry/pods/"+p.Namespace+"/"+p.Name, value.Bytes()) {
				return
			}
		}
	}
}

// largestNamespace is the one with the most Pods.
func largestNamespace(pods []*corev1.Pod) (name string) {
	count := map[string]int{}
	for _, p := range pods {
		if count[p.Namespace]++; count[p.Namespace] > count[name] {
			name = p.Namespace
		}
	}
	return name
}
