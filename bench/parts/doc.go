// Package parts measures the recorder's parts alone, each against its usual substitute, and how costs grow:
//
//   - the sink against psql's \copy,
//   - the queue against client-go's,
//   - the indexer against client-go's,
//   - the memory of a live object against an informer's,
//   - a start against a relist.
//
// Each measure is a function that runs its experiments on a [measure.Run]. [Sizes] say how much.
package parts

import (
	"time"
)

// Sizes say how much is measured.
type Sizes struct {
	Operations int           // on a queue
	Pods       int           // in an indexer
	ReadFor    time.Duration // from it, in each way
	Live       int           // objects that live while the sink is measured
	Rows       int           // that the sink writes
	Held       int           // live objects whose memory is measured
	Stopped    int           // live objects when a recorder is started again
	Going      time.Duration // how long the cluster goes on meanwhile: longer than all of that takes
	Grown      int           // events, and what lives meanwhile, that growth begins with
	GrownLive  int           // live objects that growth begins with: enough to cost more than to start
	Steps      []int         // by which it grows, from 1 on
	Streams    int           // that growth begins with
	Largest    int           // object that growth ends with, in bytes
	Sharing    []int         // clusters that write into one server at once; the first is one
	SharedLive int           // objects that live in each of them
	SharedRows int           // that each of them writes
	NoSync     bool          // have PostgreSQL not wait for its disk, which tests have no time for
}

// sharing is at all sizes what it is: how many clusters one server has is counted on one's fingers.
var sharing = []int{1, 2, 4, 8}

// Quick shows in some minutes that everything works; its figures show little else.
func Quick() Sizes {
	return Sizes{Operations: 200_000, Pods: 2000, ReadFor: 100 * time.Millisecond, Live: 1000, Rows: 10_000, Held: 5000, Stopped: 5000, Going: 20 * time.Minute, Grown: 500, GrownLive: 500, Steps: []int{1, 2, 5, 10}, Streams: 20, Largest: 1 << 20, Sharing: sharing, SharedLive: 500, SharedRows: 10_000}
}

// Middle is the size of the published figures. It runs in an hour on two cores.
func Middle() Sizes {
	return Sizes{
		Operations: 1_000_000, Pods: 10_000, ReadFor: 200 * time.Millisecond, Live: 5000, Rows: 100_000, Held: 50_000, Stopped: 20_000, Going: 20 * time.Minute,
		Grown: 500, GrownLive: 2000, Steps: []int{1, 3, 10}, Streams: 20, Largest: 1 << 20, Sharing: sharing, SharedLive: 1000, SharedRows: 20_000,
	}
}

// Full is the same at larger sizes: hours.
func Full() Sizes {
	return Sizes{
		Operations: 2_000_000, Pods: 20_000, ReadFor: time.Second, Live: 5000, Rows: 100_000, Held: 50_000, Stopped: 50_000, Going: time.Hour,
		Grown: 10_000, GrownLive: 10_000, Steps: []int{1, 2, 5, 10}, Streams: 20, Largest: 1 << 20, Sharing: sharing, SharedLive: 2000, SharedRows: 50_000,
	}
}
