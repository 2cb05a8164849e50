package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/bench/measure"
)

const (
	// watchers is how many clients watch at one time.
	watchers = 100
	// mostChanges is how many events each of them gets, if there are ten Pods for each.
	mostChanges = 100
	// changeEvery is the time between two changes. kube-apiserver ends watches that do not take a burst at once.
	changeEvery = 25 * time.Millisecond
	// awaitFor bounds how long they may take, from the first write on.
	awaitFor = 2 * time.Minute
)

// fanOut measures the cost of events that go to many clients: of our server at the end of the record, while a recorder writes.
// Writes go to etcd, so that neither server is charged with them.
func (w *world) fanOut(protocol string) measure.Experiment {
	e := measure.Experiment{
		Name: "api-watch-" + short[protocol], Title: fmt.Sprintf("WATCH by %d clients, %s", watchers, protocol), Data: fmt.Sprintf("%d events", w.changes()),
		Quantities: quantities, WarmUp: true,
	}
	live := *w.ours[protocol]
	live.url = w.live()
	same := &sameLength{}
	for _, t := range []*target{&live, w.theirs[protocol]} {
		e.Ways = append(e.Ways, measure.Way{Name: t.name, Run: func(ctx context.Context, _ int) (measure.Values, error) {
			values, err := w.watched(ctx, t)
			if err != nil {
				return nil, err
			}
			return values, same.check(t.name, values)
		}})
	}
	e.Compare = []measure.Comparison{
		{Number: Number, What: e.Title + ": CPU", Quantity: serverCPU, Of: kuberewind, To: kubeAPIServer, AtMost: 1.5},
	}
	return e
}

func (w *world) changes() int { return min(mostChanges, len(w.pods)/10) }

// watched opens the watches, changes Pods, and gives what it cost until each client has each change.
func (w *world) watched(ctx context.Context, t *target) (measure.Values, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitFor)
	defer cancel()
	rv, err := w.version(ctx, t)
	if err != nil {
		return nil, err
	}
	responses := make([]*http.Response, watchers)
	var opening errgroup.Group // the context of another one would end the watches with the opening
	for i := range responses {
		opening.Go(func() (err error) {
			responses[i], err = t.open(ctx, t.url+listed.path+"?watch=true&resourceVersion="+rv, "") //nolint:bodyclose // closed below, opened or not
			return err
		})
	}
	err = opening.Wait()
	for _, r := range responses {
		if r != nil {
			defer r.Body.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return w.change(ctx, t, responses)
}

// change changes Pods, and reads the answers until each has the changes.
func (w *world) change(ctx context.Context, t *target, responses []*http.Response) (measure.Values, error) {
	w.written++
	pods := touched(w.pods[:w.changes()], fmt.Sprintf("change %d", w.written))
	before, err := measure.CPUOf(t.pid())
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	lengths := make([]int64, len(responses))
	reading, ctx := errgroup.WithContext(ctx)
	for i, r := range responses {
		reading.Go(func() (err error) {
			s := searchFor("}\n", len(pods)) // that ends an event
			if lengths[i], err = io.Copy(s, r.Body); errors.Is(err, errFound) {
				return nil
			}
			return errors.Join(err, fmt.Errorf("%w: a watch of %s ended with %d events missing", errAnswer, t.name, s.left))
		})
	}
	reading.Go(func() error { return w.plane.Etcd.Put(ctx, paced(stored(pods))) })
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	after, err := measure.CPUOf(t.pid())
	if err != nil {
		return nil, err
	}
	var all int64
	for _, n := range lengths {
		all += n
	}
	return measure.Values{onTheClock: millis(took), serverCPU: millis(after - before), length: float64(all)}, nil
}

// paced gives values at even distances.
func paced(values iter.Seq2[string, []byte]) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		ticker := time.NewTicker(changeEvery)
		defer ticker.Stop()
		for key, value := range values {
			<-ticker.C
			if !yield(key, value) {
				return
			}
		}
	}
}

// version is from where a server is watched: from after the changes before, which our server has once they are on record.
func (w *world) version(ctx context.Context, t *target) (string, error) {
	last := w.pods[w.changes()-1]
	written, err := w.theirs[http1].versionOf(ctx, "/api/v1/namespaces/"+last.Namespace+"/pods/"+last.Name)
	if err != nil {
		return "", err
	}
	return t.versionOf(ctx, listed.path+"?limit=1&resourceVersionMatch=NotOlderThan&resourceVersion="+written)
}

// versionOf is the resource version of an answer.
func (t *target) versionOf(ctx context.Context, path string) (string, error) {
	response, err := t.open(ctx, t.url+path, "")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var of struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(response.Body).Decode(&of)
	return of.Metadata.ResourceVersion, err
}
