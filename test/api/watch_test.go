package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A watched pair is watched on both servers, until all events have come for certain.
type watched struct {
	pair
	until int64 // the version of the last write that concerns it
	upTo  int64 // events of later versions are those of another instant; 0 means none are
	by    func(*server, context.Context, question, int64) answer
}

// watches are the ways to watch a kind, from a revision on up to the end.
func (e *exam) watches(random *rand.Rand, k kind, from, end revision) (all []watched) {
	// A stream that was quiet does not know that the cluster's version has moved on.
	old := "resourceVersion=" + strconv.FormatInt(e.system.position(e.T, k, from), 10)
	until := e.system.position(e.T, k, end)
	selector := choose(random, append(slices.Clone(fields[k.Resource]), "metadata.name=web-1"))
	initial := []string{"sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"}
	for _, accept := range []string{asJSON, asMetadata, asTable} {
		for _, query := range [][]string{{old}, initial, {old, "labelSelector=" + choose(random, labelSelectors)}, {old, "fieldSelector=" + selector}} {
			all = append(all, watched{pair: same(k, end, k.path(""), accept, query...), until: until})
		}
	}
	for _, query := range [][]string{
		{}, {"resourceVersion=0"}, {"resourceVersion=" + strconv.FormatInt(until, 10)}, append([]string{old}, initial...), append([]string{"labelSelector=tier=front"}, initial...),
		append([]string{"fieldSelector=" + selector}, initial...), append([]string{"resourceVersion=0"}, initial...), {"sendInitialEvents=false", "resourceVersionMatch=NotOlderThan", old},
	} {
		all = append(all, watched{pair: same(k, end, k.path(""), asJSON, query...), until: until})
	}
	if k.namespaced {
		all = append(all, watched{pair: same(k, end, k.path("shop"), asJSON, old), until: until}, watched{pair: same(k, end, k.path("shop"), asTable, old, "includeObject=Object"), until: until},
			watched{pair: same(k, end, k.path("nowhere"), asJSON, initial...), until: until})
	}
	for _, accept := range []string{asJSON, asTable} {
		all = append(all, watched{pair: same(k, end, k.path(""), accept, old), until: until, by: (*server).socket})
	}
	then := choose(random, e.system.cuts[slices.Index(e.system.cuts, from):])
	for _, selector := range []string{"", "tier=front"} {
		all = append(all, watched{pair: same(k, then, k.path(""), asJSON, old, "labelSelector="+selector), until: e.system.position(e.T, k, then), upTo: then.rv})
	}
	return all
}

// openWatches bounds how many watches a server has at a time.
const openWatches = 300

// sameEvents compares all watches, side by side.
func (e *exam) sameEvents(all []watched) {
	var group errgroup.Group
	group.SetLimit(openWatches)
	for _, w := range all {
		w.theirs, w.ours = w.theirs.with("watch=true", "allowWatchBookmarks=true"), w.ours.with("watch=true", "allowWatchBookmarks=true")
		if w.by == nil {
			w.by = (*server).watch
		}
		group.Go(func() error {
			e.watch(w)
			return nil
		})
	}
	_ = group.Wait() // Failures are those of the test.
}

// lasting are the seconds that a watch lasts: longer each time that it ended before all had come, as it does on a busy machine.
var lasting = []int{5, 15, 45}

func (e *exam) watch(w watched) {
	for i, seconds := range lasting {
		theirs, ours := e.both(w, seconds)
		found := e.differences(w.pair, theirs, ours)
		if len(found) == 0 || !theirs.cut && !ours.cut || i == len(lasting)-1 {
			e.judge(w.pair, found)
			return
		}
	}
}

func (e *exam) both(w watched, seconds int) (theirs, ours answer) {
	lasts := "timeoutSeconds=" + strconv.Itoa(seconds)
	var both sync.WaitGroup
	both.Go(func() { theirs = w.by(e.system.theirs, e.Context(), w.theirs.with(lasts), w.until) })
	both.Go(func() { ours = w.by(e.system.ours, e.Context(), w.ours.with(lasts), w.until) })
	both.Wait()
	if w.upTo > 0 {
		theirs.upTo(w.upTo)
	}
	return theirs, ours
}

// watch collects events until a bookmark says that there are no more, or the watch ends. Other bookmarks are left out: they come when
// the server likes.
func (s *server) watch(ctx context.Context, q question, until int64) (a answer) {
	defer a.dated()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := s.send(ctx, q)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return read(response)
	}
	stream := json.NewDecoder(response.Body)
	stream.UseNumber()
	a = collect(stream.Decode, until)
	a.code, a.mediaType = response.StatusCode, response.Header.Get("Content-Type")
	return a
}

// collect reads events, one with each call of next. They are cut off if the watch ends before a bookmark.
func collect(next func(event any) error, until int64) (a answer) {
	events := []any{}
	defer func() { a.body = map[string]any{"events": events} }()
	for {
		var event map[string]any
		if err := next(&event); err != nil {
			if a.cut = true; !errors.Is(err, io.EOF) {
				a.err = err
			}
			return a
		}
		if event["type"] != "BOOKMARK" || endsInitialEvents(event["object"]) {
			events, a.times = append(events, event), append(a.times, time.Now())
			continue
		}
		if rv, err := strconv.ParseInt(versionOf(event["object"]), 10, 64); err == nil && rv >= until {
			return a
		}
	}
}

// upTo removes the events of versions after the given one.
func (a *answer) upTo(last int64) {
	events, _ := at(a.body, "events").([]any)
	kept, times := []any{}, a.times[:0]
	for i, event := range events {
		if rv, err := strconv.ParseInt(versionOf(at(event, "object")), 10, 64); err != nil || rv <= last {
			kept, times = append(kept, event), append(times, a.times[i])
		}
	}
	a.body, a.times = map[string]any{"events": kept}, times
}

func versionOf(object any) string {
	version, _ := at(object, "metadata", "resourceVersion").(string)
	return version
}

func endsInitialEvents(object any) bool {
	text, err := json.Marshal(object)
	return err == nil && strings.Contains(string(text), `"k8s.io/initial-events-end":"true"`)
}
