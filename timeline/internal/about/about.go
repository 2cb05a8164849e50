// Package about describes a record: what it holds, up to where it reaches, and whether a recorder writes it.
package about

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
)

// A Moment is a delta and its time, in milliseconds since 1970.
type Moment struct {
	Seq  int64 `json:"seq"`
	Time int64 `json:"time"`
}

// A Recording says whether a recorder writes the record.
type Recording struct {
	Now   bool              `json:"now"` // the end of the record is now
	State history.Condition `json:"state"`
	Since int64             `json:"since"` // since when the present or the last recorder has held the record
	Text  string            `json:"text"`  // a sentence about the state, and what to do
}

// A Cluster is a cluster whose record is served.
type Cluster struct {
	UID  string `json:"uid"`
	Name string `json:"name"`
}

// A Choice lists the served clusters for the user of the page, because the request names none of several.
type Choice struct {
	Clusters []Cluster `json:"clusters"`
}

// A Resource is a resource in the record.
type Resource struct {
	Resource   string `json:"resource"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

// A Meta describes a record.
type Meta struct {
	lack.Answer
	Clusters   []Cluster  `json:"clusters"`
	Cluster    string     `json:"cluster"`
	First      Moment     `json:"first"`
	Head       Moment     `json:"head"`
	Recording  Recording  `json:"recording"`
	Resources  []Resource `json:"resources"`
	Namespaces []string   `json:"namespaces"`
}

// Record describes a record.
func Record(ctx context.Context, rec *history.Record) (*Meta, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	recording, end, err := now(ctx, rec)
	if err != nil {
		return nil, err
	}
	whole := ask.Window{From: state.Extent.FirstAt, To: end.Now}
	m := &Meta{
		Answer: state.Answer(whole, end.Now), Cluster: rec.Cluster().UID, Recording: recording,
		First: Moment{state.Extent.FirstSeq, state.Extent.FirstAt.UnixMilli()}, Head: Moment{end.LastSeq, end.LastAt.UnixMilli()}, Resources: resources(end.Streams),
	}
	if m.Namespaces, err = namespaces(ctx, rec, end.Streams); err != nil {
		return nil, err
	}
	return m, nil
}

func resources(streams []history.Stream) []Resource {
	all := []Resource{}
	for i := range streams {
		r := Resource{streams[i].GroupResource().String(), streams[i].Kind, streams[i].Namespaced}
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// namespaces returns all namespaces on record, and the namespaces of streams that are confined to one.
func namespaces(ctx context.Context, rec *history.Record, streams []history.Stream) ([]string, error) {
	names, of := []string{}, []int32{}
	for i := range streams {
		if streams[i].GroupResource().String() == "namespaces" {
			of = append(of, streams[i].ID)
		}
		if streams[i].Scope != "" {
			names = append(names, streams[i].Scope)
		}
	}
	for life, err := range rec.Lives(ctx, history.LifeQuery{Scope: history.Scope{Streams: of}}) {
		if err != nil {
			return nil, err
		}
		names = append(names, life.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func now(ctx context.Context, rec *history.Record) (Recording, history.End, error) {
	end, err := rec.Commits().End(ctx)
	if err != nil {
		return Recording{}, end, err
	}
	epochs, err := rec.Completeness().Epochs(ctx)
	if err != nil {
		return Recording{}, end, err
	}
	r := Recording{State: end.Condition(0), Text: text(end.Pulse)}
	r.Now = r.State == history.Following
	if len(epochs) > 0 {
		r.Since = epochs[len(epochs)-1].StartedAt.UnixMilli()
	}
	return r, end, nil
}

// text describes the state of the recorder, and what to do.
func text(p history.Pulse) string {
	last := "The last commit was at " + p.Committed().Truncate(time.Second).Format(time.RFC3339) + "."
	switch p.Condition(0) {
	case history.Following:
		return "The recorder " + p.Recorder + " records. " + last
	case history.Stopped:
		return "No recorder is running. " + last + " Start the recorder."
	case history.Starting:
		return "The recorder " + p.Recorder + " has begun, and has committed nothing yet. " + last
	case history.Quiet:
		return fmt.Sprintf("The recorder %s has committed nothing for %s. Its log says whether it reaches the cluster. %s", p.Recorder, p.Quiet(0).Round(time.Second), last)
	case history.Behind:
		return fmt.Sprintf("The recorder %s is %s behind the cluster, as its metric kuberewind_queue_oldest_seconds says. %s", p.Recorder, p.Lag().Round(time.Second), last)
	}
	return last
}

// A Tail describes what came after a seq.
type Tail struct {
	lack.Answer
	Time      int64     `json:"time"`
	Count     int64     `json:"count"`
	Recording Recording `json:"recording"`
	Head      string    `json:"head"`  // the last commit, as history.Head prints it
	Other     bool      `json:"other"` // the client's commit is not in this record: the record was restored from a backup
}

// After returns where the record ends, and how many deltas came after a seq. It does not wait. known is the head in an
// earlier answer, or zero.
func After(ctx context.Context, rec *history.Record, seq int64, known history.Head) (*Tail, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	recording, end, err := now(ctx, rec)
	if err != nil {
		return nil, err
	}
	t := &Tail{Answer: state.Answer(ask.Window{From: end.LastAt, To: end.Now}, end.Now), Time: end.LastAt.UnixMilli(), Recording: recording}
	t.Seq = end.LastSeq
	t.Count = max(t.Seq-seq, 0)
	head, err := rec.Commits().Head(ctx)
	if err != nil {
		return nil, err
	}
	t.Head = head.String()
	if known.Batch > 0 && known != head {
		compared, err := rec.Commits().CompareHead(ctx, known)
		if err != nil {
			return nil, err
		}
		t.Other = compared.Outcome == history.HeadDifferent
	}
	return t, nil
}

// An Instant is an instant that was found in the record.
type Instant struct {
	lack.Answer
	At Moment `json:"at"`
}

// Find finds an instant.
func Find(ctx context.Context, rec *history.Record, at history.Instant) (*Instant, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	point, err := rec.Resolve(ctx, at, history.Scope{})
	if err != nil {
		return nil, err
	}
	a := &Instant{At: Moment{point.Seq, point.Time.UnixMilli()}}
	a.Answer = lack.Answer{Seq: state.Extent.LastSeq, Revision: state.Revision, Incomplete: lack.OfNotes(point.Notes)}
	return a, nil
}
