package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kuberewind/kuberewind/checkpoint"
)

// A rebuilding is a Rebuild on its way.
type rebuilding struct {
	view    *view // through the pool
	log     *slog.Logger
	point   Point
	scope   Scope
	options RebuildOptions
	emit    func(Object) error
	streams streamSet
	workers int
	heirs   map[checkpoint.Key]int64 // of names, the last life of those that were caught up on and began by the point

	objects, damaged atomic.Int64
	progress         sync.Mutex // held while Progress is called
	stats            RebuildStats

	mu    sync.Mutex // protects doubt
	doubt []target   // objects that the checkpoint and the tail do not give: they are folded from the deltas alone
}

// Rebuild gives every object of a scope that was live at the point, in no order. emit is called from several goroutines at once.
//
// It starts from the newest checkpoint at or before the point, and folds the deltas after it. For single objects, and if there
// is no checkpoint, it folds each object from its deltas; the result is the same. RebuildOptions.Damaged receives an object
// that does not fold to its digest; without it, a *DamagedError ends the rebuild. A *MissingDayError says that a needed day's
// partition is gone.
func (r *Record) Rebuild(ctx context.Context, p Point, scope Scope, o RebuildOptions, emit func(Object) error) (RebuildStats, error) {
	if p.RV != "" && p.streams == nil {
		return RebuildStats{}, errors.New("rebuild: a point by resource version has to come from Resolve")
	}
	b := &rebuilding{view: r.view, log: r.log, point: p, scope: scope, options: o, emit: emit, workers: runtime.GOMAXPROCS(0)}
	var later *search
	// One state of the record: a checkpoint may be dropped while it is read.
	err := r.view.atOnce(ctx, func(v *view) (err error) {
		later, err = b.run(ctx, v)
		return err
	})
	if err == nil && later != nil {
		// Rows up to a seq do not change, so several connections see one state too. None is held meanwhile: rebuilds side by side would wait
		// for each other's.
		err = b.findAll(ctx, r.view, b.workers, later)
	}
	b.stats.Objects, b.stats.Damaged = b.objects.Load(), b.damaged.Load()
	if err != nil {
		return b.stats, fmt.Errorf("rebuild %s: %w", p.Instant, err)
	}
	return b.stats, nil
}

// A search is for objects that are folded from their deltas alone.
type search struct {
	lives   map[int64]*Life
	targets []target
}

// run gives what it can within the transaction of a view, and returns what is better found by several connections.
func (b *rebuilding) run(ctx context.Context, v *view) (later *search, err error) {
	if b.streams, err = v.readStreams(ctx); err != nil {
		return nil, err
	}
	var from *checkpoint.Saved
	if !b.options.NoCheckpoint && b.scope.Name == "" {
		if from, err = b.newest(ctx, v); err != nil {
			return nil, err
		}
	}
	if from != nil {
		return nil, b.fromCheckpoint(ctx, v, from)
	}
	found, err := b.fromDeltas(ctx, v)
	if err != nil || len(found.targets) > lastChunk {
		return found, err
	}
	return nil, b.findAll(ctx, v, 1, found)
}

func (b *rebuilding) tell(stage string, done, total int64) {
	if b.options.Progress == nil {
		return
	}
	b.progress.Lock()
	defer b.progress.Unlock()
	b.options.Progress(Progress{Stage: stage, Done: done, Total: total})
}

func (b *rebuilding) give(o *Object) error {
	b.objects.Add(1)
	return b.emit(*o)
}

func (b *rebuilding) hurt(d *DamagedError) error {
	b.damaged.Add(1)
	if b.options.Damaged == nil {
		return d
	}
	b.options.Damaged(d)
	return nil
}

// doubted puts an object aside.
func (b *rebuilding) doubted(id, bound int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubt = append(b.doubt, target{id: id, bound: bound})
}

func (b *rebuilding) inScope(stream int32, namespace, name string) bool {
	return (b.scope.Streams == nil || slices.Contains(b.scope.Streams, stream)) &&
		(b.scope.Namespace == "" || b.scope.Namespace == namespace) && (b.scope.Name == "" || b.scope.Name == name)
}

func (l *Life) object() Object {
	return Object{ObjectID: l.ObjectID, Stream: l.Stream, Namespace: l.Namespace, Name: l.Name, UID: l.UID}
}
