package data

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Description says what a Set consists of.
type Description struct {
	Resources []Resource
	Live      []int                     // at the beginning, by resource
	Bytes     []int64                   // of the JSON of all events, by resource
	Events    []map[watch.EventType]int // by resource
	Took      time.Duration             // from the first event to the last
	Total     int                       // events
}

// Describe goes through a Set.
func Describe(set Set) (*Description, error) {
	n := len(set.Resources())
	d := &Description{Resources: set.Resources(), Live: make([]int, n), Bytes: make([]int64, n), Events: make([]map[watch.EventType]int, n)}
	for i := range d.Events {
		d.Events[i] = map[watch.EventType]int{}
	}
	for e := range set.First() {
		d.Live[e.Resource]++
	}
	var first time.Time
	for e, err := range set.Events() {
		if err != nil {
			return nil, err
		}
		if d.Total == 0 {
			first = e.At
		}
		d.Total++
		d.Took = e.At.Sub(first)
		d.Events[e.Resource][e.Type]++
		d.Bytes[e.Resource] += int64(len(e.Object))
	}
	return d, nil
}

// Count is how many events there are of a resource.
func (d *Description) Count(resource int) int {
	n := 0
	for _, of := range d.Events[resource] {
		n += of
	}
	return n
}

// Table prints the description, without the resources of which there is nothing.
func (d *Description) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "resource\tlive at first\tevents\tof all\tadded\tmodified\tdeleted\tmean bytes\t")
	live, bytes := 0, int64(0)
	line := func(name string, live, events int, of map[watch.EventType]int, bytes int64) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f %%\t%d\t%d\t%d\t%d\t\n", name, live, events, 100*float64(events)/float64(max(d.Total, 1)),
			of[watch.Added], of[watch.Modified], of[watch.Deleted], bytes/int64(max(events, 1)))
	}
	all := map[watch.EventType]int{}
	for i, r := range d.Resources {
		live, bytes = live+d.Live[i], bytes+d.Bytes[i]
		for kind, n := range d.Events[i] {
			all[kind] += n
		}
		if d.Live[i]+d.Count(i) == 0 {
			continue
		}
		line(r.Resource, d.Live[i], d.Count(i), d.Events[i], d.Bytes[i])
	}
	line("all", live, d.Total, all, bytes)
	fmt.Fprintf(w, "in %s of the cluster's time\t\n", d.Took.Round(time.Second))
	return w.Flush()
}
