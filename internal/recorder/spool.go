package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// leftover is what a recorder before this one has left of a stream in the spool.
type leftover struct {
	deltafifo.Spooled
	listing     bool // it ends within a list
	listCause   delta.Cause
	interrupted delta.Cause
	rules       *string            // under which its last whole list was taken in, nil where it has none
	anew        bool               // it has all of a list after a history that is no more: the record's is that one
	lives       map[types.UID]bool // decisions, as in stream, with those on record
	// unproven are versions that were served last, the newest among them. The recorder may have ended before it looked whether
	// etcd was put back to before them.
	unproven []postgres.Version
}

func (r *Recorder) spoolDir(clusterUID string) string {
	return filepath.Join(r.cfg.Spool(), clusterUID)
}

// openSpool opens the spool of the cluster and adds it to the queue's options, with what an earlier recorder has left in it.
// Without a usable folder there is no spool: a full queue then holds the watches back.
func (r *Recorder) openSpool(ctx context.Context, o *deltafifo.Options, owner spooling.Owner) error {
	size, err := r.cfg.SpoolBytes()
	if err != nil {
		return err
	}
	dir := r.spoolDir(owner.Cluster)
	if _, err := os.Stat(dir); size == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	options := spool.Options{Dir: dir, MaxBytes: size}
	r.spool, err = spooling.Take(ctx, options, r.log)
	if errors.Is(err, syscall.EROFS) {
		r.log.Error("the disk of the spool is read-only: what lies there is written, and nothing is added", "folder", dir, "error", err)
		r.metrics.SpoolFailing.Set(1)
		options.ReadOnly, r.spoolReadOnly = true, true
		r.spool, err = spooling.Take(ctx, options, r.log)
	}
	if err != nil && ctx.Err() != nil {
		return err // Nobody has found out what is there.
	}
	if err != nil {
		r.spool = nil
		r.metrics.SpoolFailing.Set(1)
		if c, lookErr := spool.Look(dir); lookErr == nil && c.Bytes > 0 && !errors.Is(err, spool.ErrLocked) {
			r.spoolCorrupt = true // What lies there would have come first.
		}
		r.log.Error("there is no spool: a full queue will hold the watches back", "folder", dir, "error", err)
		return nil
	}
	if r.spool.Aside() != "" {
		r.spoolCorrupt = true
		r.reportAside(r.spool.Aside(), "the spool was damaged; the streams go on from the last entry before the damage")
	}
	o.Codec, o.OnSpill = codec{stream: r.spooledStream(ctx)}, r.spilled
	return r.useSpool(o, owner)
}

// useSpool goes on from what is in the spool, and gives the spool to the queue.
func (r *Recorder) useSpool(o *deltafifo.Options, owner spooling.Owner) error {
	if err := r.resumeSpool(o, owner); err != nil || r.spool == nil {
		return err
	}
	o.Spool = r.spool
	return r.identify(owner)
}

// spoolOffset is the spool's offset after the oldest entries.
func (r *Recorder) spoolOffset(entries int) postgres.Offset {
	if r.spool == nil {
		return postgres.Offset{}
	}
	return postgres.Offset{Spool: r.spoolID, Next: r.queue.Offset(entries)}
}

// identify has the spool go on as it was begun, or begins it anew if it is empty. An empty spool on a read-only disk stays what it is: its
// segments are there again at the next start.
func (r *Recorder) identify(owner spooling.Owner) (err error) {
	if empty := r.spool.First() == r.spool.Next(); empty && (!r.spoolReadOnly || len(r.spool.Header()) == 0) {
		r.spoolID = owner.ID
		return owner.Begin(r.spool)
	}
	r.spoolID, err = spooling.ID(r.spool)
	return err
}

func (r *Recorder) reportAside(folder, why string) {
	r.metrics.SpoolSetAside.Inc()
	r.log.Error("what was spooled is set aside", "why", why, "folder", folder)
}

// spilled tells metrics and log what the queue does with the spool.
func (r *Recorder) spilled(e deltafifo.SpillEvent) {
	attributes := []any{"entries", e.Entries, "bytes", e.Bytes}
	switch {
	case e.Err != nil:
		r.metrics.SpoolFailing.Set(1)
		r.log.Error("the spool cannot be written; the watches are held back until it can, or the database takes what is queued", append(attributes, "error", e.Err)...)
	case e.Spilling:
		r.metrics.SpoolFailing.Set(0)
		r.log.Warn("the database does not keep up; what waits for it goes to the spool", attributes...)
	default:
		r.metrics.SpoolFailing.Set(0)
		r.log.Info("the spool is drained", attributes...)
	}
}

// spillLook is how often the recorder looks for entries that have waited for long. It is also how soon a disk that does not
// take them is tried again.
const spillLook = time.Second

// spillOverdue has what waits for long go to the spool, until ctx ends.
func (r *Recorder) spillOverdue(ctx context.Context) {
	ticker := time.NewTicker(spillLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.queue.SpillOverdue()
		}
	}
}

// spooledStream opens the stream of a resource that the spool names.
func (r *Recorder) spooledStream(ctx context.Context) func(kube.Resource) (*stream, error) {
	return func(resource kube.Resource) (*stream, error) {
		s, _, err := r.streamOf(ctx, resource, "")
		return s, err
	}
}

// resumeSpool finds out which of the entries are in the record, and what the others mean for the streams.
func (r *Recorder) resumeSpool(o *deltafifo.Options, owner spooling.Owner) error {
	if r.spool.First() == r.spool.Next() {
		return nil
	}
	from, err := spooling.Start(r.spool, owner, r.sink.Info().Head, r.sink.Info().Offset)
	switch {
	case errors.Is(err, spooling.ErrUnreadable):
		return r.setCorruptSpoolAside(err)
	case err != nil:
		return r.setSpoolAside(err.Error())
	}
	if err := r.spool.Release(from); err != nil {
		return err
	}
	if r.spool.First() == r.spool.Next() {
		return nil
	}
	left, err := r.readSpool(o.Codec)
	if errors.Is(err, spooling.ErrUnreadable) {
		return r.setCorruptSpoolAside(err)
	}
	if err != nil {
		return err
	}
	for _, l := range left {
		if l.At.After(r.seen) {
			r.seen = l.At
		}
	}
	// Reading it may have taken minutes, of which nothing was seen either.
	r.sink.StartAfter(times.Later(r.seen, r.now()))
	info := r.sink.Info()
	r.clock.Raise(info.Started)
	o.Left = map[any]deltafifo.Spooled{}
	for s, l := range left {
		if s.interrupted = l.interrupted; l.Entries == 0 {
			continue // Nothing is of the stream, but its gap begins there.
		}
		s.left, s.since = l, info.Started
		if l.rules != nil {
			s.listedUnder = *l.rules
		}
		if s.record.Position() != "" {
			s.occurrence.resume(times.Later(l.At, info.Observed), info.Started)
		}
		o.Left[s] = l.Spooled
	}
	r.log.Info("going on from the spool of a recorder before", "entries", r.spool.Next()-r.spool.First(), "bytes", r.spool.Bytes(), "streams", len(left))
	return nil
}

func (r *Recorder) setCorruptSpoolAside(err error) error {
	r.spoolCorrupt = true
	for _, s := range r.snapshot() {
		s.excused(delta.CauseSpoolCorrupt)
	}
	return r.setSpoolAside(err.Error())
}

// setSpoolAside goes on with an empty spool, or without one where the disk does not let anything be moved.
func (r *Recorder) setSpoolAside(why string) error {
	folder, err := r.spool.SetAside()
	if err == nil {
		r.reportAside(folder, why)
		return nil
	}
	r.metrics.SpoolFailing.Set(1)
	r.log.Error("what was spooled can be neither used nor set aside: a full queue will hold the watches back", "why", why, "error", err)
	err = r.spool.Close()
	r.spool = nil
	return err
}

// readSpool reads all entries once.
func (r *Recorder) readSpool(codec deltafifo.Codec) (map[*stream]*leftover, error) {
	left := map[*stream]*leftover{}
	first := r.spool.First()
	defer r.spool.SeekTo(first)
	r.spool.SeekTo(first)
	for {
		record, ok, err := r.spool.Read()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", spooling.ErrUnreadable, err)
		}
		if !ok {
			return left, nil
		}
		e, err := deltafifo.ReadRecord(codec, record)
		if errors.Is(err, deltafifo.ErrRecord) {
			return nil, fmt.Errorf("%w: %w", spooling.ErrUnreadable, err)
		}
		if err != nil {
			return nil, err
		}
		s := e.Stream.(*stream)
		leftOf(left, s).take(s, &e)
		for _, b := range e.Beside {
			leftOf(left, b.Stream.(*stream)).interrupt(e.Marker)
		}
	}
}

func leftOf(left map[*stream]*leftover, s *stream) *leftover {
	if left[s] == nil {
		left[s] = &leftover{lives: s.decided()}
	}
	return left[s]
}

// take goes one entry further.
func (l *leftover) take(s *stream, e *deltafifo.Entry) {
	l.Entries++
	l.At = e.Observed
	if e.Source == delta.SourceWatch && l.Position == (delta.Position{}) {
		l.Position = delta.At(s.record.Position()) // The watch has gone on from there.
	}
	e.Move(&l.Position)
	l.decide(s, e)
	l.sample(e)
	switch m := e.Marker; {
	case m == nil:
		if fromList(e) && !l.listing {
			l.listing = true
			l.listCause = l.causeOfList(s, e.Source)
		}
	case m.Kind == delta.Compared:
	case m.Kind == delta.Interrupted:
		l.interrupt(m)
	default:
		if m.Cause.Ends(l.interrupted) {
			l.interrupted = ""
		}
		if m.Kind == delta.Replaced {
			l.listing = false
			l.rules = &m.Rules
			l.anew = l.anew || m.Cause == delta.CauseHistoryReversed
		}
	}
}

// interrupt takes over why the stream cannot be followed.
func (l *leftover) interrupt(m *delta.Marker) {
	if l.interrupted = m.Cause; m.Cause == delta.CauseHistoryReversed {
		l.unproven = nil // They are of the history that is no more.
	}
}

// sample keeps some of what was served last: the newest, and more of the newer than of the older.
func (l *leftover) sample(e *deltafifo.Entry) {
	o, ok := e.Delta.Object.(*kube.Object)
	if !ok || e.Source != delta.SourceWatch || e.Delta.Type == delta.Deleted || l.interrupted == delta.CauseHistoryReversed {
		return
	}
	l.unproven = append(l.unproven, postgres.Version{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), ResourceVersion: o.ResourceVersion, Observed: e.Observed})
	since := e.Observed.Add(-postgres.UnprovenFor)
	l.unproven = slices.DeleteFunc(l.unproven, func(v postgres.Version) bool { return v.Observed.Before(since) })
	if last := len(l.unproven) - 1; last >= rollback.KeptSamples {
		thinned := l.unproven[:0]
		for i, v := range l.unproven {
			if (last-i)%2 == 0 {
				thinned = append(thinned, v)
			}
		}
		l.unproven = thinned
	}
}

// decide takes over what the entry says of which lives are recorded.
func (l *leftover) decide(s *stream, e *deltafifo.Entry) {
	for _, d := range decisionsOf(e) {
		if d.Excluded {
			l.lives[d.UID] = false
		} else {
			delete(l.lives, d.UID) // The life has ended, or it was to be decided anew.
		}
	}
	switch o, ok := e.Delta.Object.(*kube.Object); {
	case !ok:
	case e.Delta.Type == delta.Deleted:
		delete(l.lives, o.UID)
	case s.rememberable(o.Namespace):
		l.lives[o.UID] = true
	}
}

// causeOfList is why there is a list, of which this is the source of the first delta. That it was interrupted may be on record already.
func (l *leftover) causeOfList(s *stream, source delta.Source) delta.Cause {
	if source == delta.SourceList {
		return delta.CauseFirstList
	}
	return cmp.Or(l.interrupted, s.record.OpenGap(), delta.CauseFirstList)
}

func fromList(e *deltafifo.Entry) bool {
	return e.Delta.Type != "" && e.Source.Listed()
}
