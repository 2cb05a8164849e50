package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/bench/data"
)

// bareJob is the child's task.
type bareJob struct {
	Kubeconfig []byte
	Resources  []data.Resource
	Events     []int // of each resource
}

// bareSaid is what it says twice: when all watches are open, and, with when it had read each event, at the end.
type bareSaid struct {
	Times [][]int64 // by resource, in nanoseconds since 1970
}

// bare watches and does nothing: what it takes is the way from the server to a client that has read the bytes of an event.
func bare(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var job bareJob
	if err := in.Decode(&job); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(job.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	said := bareSaid{Times: make([][]int64, len(job.Resources))}
	var bodies []io.ReadCloser
	defer func() {
		for _, body := range bodies {
			body.Close()
		}
	}()
	for _, r := range job.Resources {
		body, err := open(ctx, client, config.Host, r)
		if err != nil {
			return err
		}
		bodies = append(bodies, body)
	}
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(bareSaid{}); err != nil {
		return err
	}
	var group errgroup.Group
	for i, body := range bodies {
		group.Go(func() (err error) {
			said.Times[i], err = read(body, job.Events[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return encoder.Encode(said)
}

// watch runs a client that does nothing.
func (r *run) watch(ctx context.Context) error {
	recording, cancel := context.WithCancel(ctx)
	defer cancel()
	job := bareJob{Kubeconfig: r.served.Kubeconfig, Resources: r.bench.set.Resources(), Events: make([]int, len(r.bench.set.Resources()))}
	left := r.out.Events
	for e, err := range r.bench.set.Events() {
		if err != nil {
			return err
		}
		if left--; left < 0 {
			break
		}
		job.Events[e.Resource]++
	}
	s, err := newChild(recording, bareChild, job)
	if err != nil {
		return err
	}
	defer s.close()
	defer cancel()
	var said bareSaid
	if err := s.said.Decode(&said); err != nil {
		return err
	}
	if err := r.watched(ctx); err != nil {
		return err
	}
	if err := r.served.Go(ctx); err != nil {
		return err
	}
	if err := s.said.Decode(&said); err != nil {
		return err
	}
	written, err := r.served.Times(ctx)
	if err != nil {
		return err
	}
	next := make([]int, len(job.Events))
	for _, e := range written {
		read := said.Times[e.Resource][next[e.Resource]]
		next[e.Resource]++
		r.out.Latencies = append(r.out.Latencies, latency{e.At, time.Duration(read - e.At)})
	}
	slices.SortFunc(r.out.Latencies, byLength)
	return nil
}

// open lists a resource, for where its watch begins, and watches it.
func open(ctx context.Context, client *http.Client, host string, r data.Resource) (io.ReadCloser, error) {
	address := host + "/apis/" + r.APIVersion() + "/" + r.Resource
	if r.Group == "" {
		address = host + "/api/" + r.APIVersion() + "/" + r.Resource
	}
	body, err := get(ctx, client, address+"?limit=1")
	if err != nil {
		return nil, err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(body).Decode(&list)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	return get(ctx, client, address+"?watch=true&resourceVersion="+list.Metadata.ResourceVersion)
}

func get(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", address, resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}

func read(body io.Reader, n int) ([]int64, error) {
	times := make([]int64, 0, n)
	lines := bufio.NewReaderSize(body, 1<<20)
	for len(times) < n {
		text, err := lines.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("after %d events of %d: %w", len(times), n, err)
		}
		if !bytes.HasPrefix(text, []byte(`{"type":"BOOKMARK"`)) {
			times = append(times, time.Now().UnixNano())
		}
	}
	return times, nil
}
