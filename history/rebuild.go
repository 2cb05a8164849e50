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

// A rebuilding is the state of one Rebuild.
type rebuilding struct {
	view       *view // through the pool
	log        *slog.Logger
	point      Point
	scope      Scope
	options    RebuildOptions
	emit       func(Object) error
	streams    streamSet
	workers    int
	successors map[checkpoint.Key]int64 // by name, the last recovered life that began by the point

	objects, damaged atomic.Int64
	progress         sync.Mutex // held while Progress is called
	stats            RebuildStats

	mu     sync.Mutex // protects refold
	refold []target   // objects to fold from the deltas alone, because the checkpoint and the tail do not suffice
}

// Rebuild calls emit with every object of a scope that was live at the point, in no order. It calls emit from several
// goroutines at once.
//
// It starts from the newest checkpoint at or before the point, and folds the later deltas onto it. For single objects, and
// if there is no checkpoint, it folds each object from its deltas; the result is the same. RebuildOptions.Damaged receives
// each object that does not fold to its digest; if it is nil, a *DamagedError ends the rebuild. A *MissingDayError says
// that the partition of a needed day is gone.
func (r *Record) Rebuild(ctx context.Context, p Point, scope Scope, o RebuildOptions, emit func(Object) error) (RebuildStats, error) {
	if p.RV != "" && p.streams == nil {
		return RebuildStats{}, errors.New("rebuild: a point by resource version has to come from Resolve")
	}
	b := &rebuilding{view: r.view, log: r.log, point: p, scope: scope, options: o, emit: emit, workers: runtime.GOMAXPROCS(0)}
	var later *search
	// All reads are within one state of the record: a recorder may drop a checkpoint while it is read.
	err := r.view.inSnapshot(ctx, func(v *view) (err error) {
		later, err = b.run(ctx, v)
		return err
	})
	if err == nil && later != nil {
		// Rows up to a seq do not change, so several connections see one state, too. The rebuild must not hold a connection
		// meanwhile: concurrent rebuilds would wait for each other's connections.
		err = b.findAll(ctx, r.view, b.workers, later)
	}
	b.stats.Objects, b.stats.Damaged = b.objects.Load(), b.damaged.Load()
	if err != nil {
		return b.stats, fmt.Errorf("rebuild %s: %w", p.Instant, err)
	}
	return b.stats, nil
}

// A search is the set of objects to fold from their deltas alone.
type search struct {
	lives   map[int64]*Life
	targets []target
}

// run emits what it can within the transaction of a view. It returns the search that several connections do faster.
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

func (b *rebuilding) report(stage string, done, total int64) {
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

func (b *rebuilding) reportDamaged(d *DamagedError) error {
	b.damaged.Add(1)
	if b.options.Damaged == nil {
		return d
	}
	b.options.Damaged(d)
	return nil
}

// foldLater keeps an object to fold from its deltas alone.
func (b *rebuilding) foldLater(id, bound int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refold = append(b.refold, target{id: id, bound: bound})
}

func (b *rebuilding) inScope(stream int32, namespace, name string) bool {
	return (b.scope.Streams == nil || slices.Contains(b.scope.Streams, stream)) &&
		(b.scope.Namespace == "" || b.scope.Namespace == namespace) && (b.scope.Name == "" || b.scope.Name == name)
}

func (l *Life) object() Object {
	return Object{ObjectID: l.ObjectID, Stream: l.Stream, Namespace: l.Namespace, Name: l.Name, UID: l.UID}
}
