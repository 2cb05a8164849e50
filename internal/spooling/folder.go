package spooling

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Folder is the place of a cluster's spool. If the disk does not take a spool, the recorder works without one: a full
// queue then blocks the watches. Open and Resume run one after the other, before the queue is made. After that, a
// Folder does not change.
type Folder struct {
	Options spool.Options // read-only if the disk is
	Log     *slog.Logger
	Metrics *telemetry.Metrics

	spool   *spool.Spool // nil if there is none
	corrupt bool
	id      []byte // identity of the spool, which each commit notes
}

// Corrupt reports whether a part of an earlier recorder's spool could not be read.
func (f *Folder) Corrupt() bool { return f.corrupt }

// Open opens the spool. It returns an error only if ctx has ended: then the content of the folder is not known.
func (f *Folder) Open(ctx context.Context) (err error) {
	if _, err := os.Stat(f.Options.Dir); f.Options.MaxBytes == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f.spool, err = OpenExclusive(ctx, f.Options, f.Log)
	if errors.Is(err, syscall.EROFS) {
		f.Log.Error("the disk of the spool is read-only: its entries are written to the database, and none are added; make the disk writable, and restart the recorder", "folder", f.Options.Dir, "error", err)
		f.Metrics.SpoolFailing.Set(1)
		f.Options.ReadOnly = true
		f.spool, err = OpenExclusive(ctx, f.Options, f.Log)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		f.spool = nil
		f.Metrics.SpoolFailing.Set(1)
		if c, lookErr := spool.Inspect(f.Options.Dir); lookErr == nil && c.Bytes > 0 && !errors.Is(err, spool.ErrLocked) {
			f.corrupt = true // The entries there would have come first.
		}
		f.Log.Error("the spool cannot be opened: a full queue will hold the watches back; repair its folder, and restart the recorder", "folder", f.Options.Dir, "error", err)
		return nil
	}
	if f.spool.Aside() != "" {
		f.corrupt = true
		f.reportAside(f.spool.Aside(), "the spool was damaged; the streams go on from the last entry before the damage")
	}
	return nil
}

// Close closes the spool. Its entries stay.
func (f *Folder) Close() error {
	if f.spool == nil {
		return nil
	}
	return f.spool.Close()
}

// Spool returns the spool for the queue, nil if there is none.
func (f *Folder) Spool() deltafifo.Spool {
	if f.spool == nil {
		return nil
	}
	return f.spool
}

// Aside returns the folder to which a spool was set aside, empty if none was.
func (f *Folder) Aside() string {
	if f.spool == nil {
		return ""
	}
	return f.spool.Aside()
}

// Offset returns the offset that a commit notes, given the number of the first entry after the batch (I7).
func (f *Folder) Offset(next uint64) postgres.Offset {
	if f.spool == nil {
		return postgres.Offset{}
	}
	return postgres.Offset{Spool: f.id, Next: next}
}

// Resume finds the entries that are not recorded, and the state of each stream after them. Unreadable says that it
// could not read the spool and has set it aside. Noted is the offset in the head of the record, and owner has that
// head.
func (f *Folder) Resume(owner Owner, noted postgres.Offset, codec deltafifo.Codec) (left map[Stream]*Leftover, unreadable bool, err error) {
	if f.spool == nil {
		return nil, false, nil
	}
	left, err = f.resume(owner, noted, codec)
	if unreadable = errors.Is(err, ErrUnreadable); unreadable {
		f.corrupt = true
		err = f.setAside(err.Error())
	}
	if err != nil || f.spool == nil {
		return nil, unreadable, err
	}
	return left, unreadable, f.identify(owner)
}

func (f *Folder) resume(owner Owner, noted postgres.Offset, codec deltafifo.Codec) (map[Stream]*Leftover, error) {
	if f.empty() {
		return nil, nil
	}
	from, err := FirstUnrecorded(f.spool, owner, owner.Head, noted)
	if errors.Is(err, ErrUnreadable) {
		return nil, err
	}
	if err != nil {
		return nil, f.setAside(err.Error())
	}
	if err := f.spool.Release(from); err != nil || f.empty() {
		return nil, err
	}
	return f.read(codec)
}

func (f *Folder) empty() bool { return f.spool.First() == f.spool.Next() }

// identify keeps the identity of a spool with entries, and gives an empty spool a new one. An empty spool on a
// read-only disk keeps its identity: its segments are there again at the next start.
func (f *Folder) identify(owner Owner) (err error) {
	if f.empty() && (!f.Options.ReadOnly || len(f.spool.Header()) == 0) {
		f.id = owner.ID
		return owner.Begin(f.spool)
	}
	f.id, err = ID(f.spool)
	return err
}

// setAside goes on with an empty spool. If the disk does not allow a move, it goes on without a spool.
func (f *Folder) setAside(why string) error {
	folder, err := f.spool.SetAside()
	if err == nil {
		f.reportAside(folder, why)
		return nil
	}
	f.Metrics.SpoolFailing.Set(1)
	f.Log.Error("the spool can be neither used nor set aside: a full queue will hold the watches back; repair the disk, and restart the recorder",
		"folder", f.Options.Dir, "why", why, "error", err)
	err = f.spool.Close()
	f.spool = nil
	return err
}

func (f *Folder) reportAside(folder, why string) {
	f.Metrics.SpoolSetAside.Inc()
	f.Log.Error("the spool is set aside: its entries are not used; look at the folder, then remove it", "why", why, "folder", folder)
}

// read reads all entries once.
func (f *Folder) read(codec deltafifo.Codec) (map[Stream]*Leftover, error) {
	left := map[Stream]*Leftover{}
	first := f.spool.First()
	defer f.spool.SeekTo(first)
	f.spool.SeekTo(first)
	for {
		record, ok, err := f.spool.Read()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if !ok {
			f.Log.Info("the previous recorder left entries in the spool; writing them first", "entries", f.spool.Next()-first, "bytes", f.spool.Bytes(), "streams", len(left))
			return left, nil
		}
		e, err := deltafifo.ReadRecord(codec, record)
		if errors.Is(err, deltafifo.ErrRecord) {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if err != nil {
			return nil, err
		}
		s := e.Stream.(Stream)
		leftOf(left, s).take(s, &e)
		for _, b := range e.Others {
			leftOf(left, b.Stream.(Stream)).interrupt(e.Marker)
		}
	}
}

func leftOf(left map[Stream]*Leftover, s Stream) *Leftover {
	if left[s] == nil {
		left[s] = &Leftover{Lives: s.Decided()}
	}
	return left[s]
}

// Spilled reports in metrics and log how the queue uses the spool.
func (f *Folder) Spilled(e deltafifo.SpillEvent) {
	attributes := []any{"entries", e.Entries, "bytes", e.Bytes}
	switch {
	case e.Err != nil:
		f.Metrics.SpoolFailing.Set(1)
		f.Log.Error("the spool cannot be written; the watches are held back until it can, or the database takes the queued entries", append(attributes, "error", e.Err)...)
	case e.Spilling:
		f.Metrics.SpoolFailing.Set(0)
		f.Log.Warn("the database does not keep up; waiting entries go to the spool", attributes...)
	default:
		f.Metrics.SpoolFailing.Set(0)
		f.Log.Info("the database has taken all entries of the spool", attributes...)
	}
}

// spillLook is how often the recorder looks for entries that have waited for long. After a failed write, it is also the
// time to the next try.
const spillLook = time.Second

// SpillOverdue makes the queue spill overdue entries, until ctx ends.
func SpillOverdue(ctx context.Context, queue interface{ SpillOverdue() }) {
	ticker := time.NewTicker(spillLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			queue.SpillOverdue()
		}
	}
}
