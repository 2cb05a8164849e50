package history

import (
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/internal/fold"
)

// Scope says what is asked for; the zero value is the whole cluster.
type Scope struct {
	Streams   []int32 // of Record.Streams; nil means all
	Namespace string  // "" means all
	Name      string  // "" means all
}

// A Point is an instant that was found in the record: it says which deltas belong to it.
type Point struct {
	Instant Instant
	Seq     int64     // deltas up to this seq belong to it …
	RV      string    // … and not beyond this resource version, if not ""
	Time    time.Time // the instant as a time: what ages are relative to
	Until   int64     // deltas after Seq and up to this seq belong to it if they occurred by Time: they were caught up on; 0 means none
	Notes   []Note

	recorded time.Time             // where the record ended when the point was found
	crossed  map[int64]bool        // deltas after Seq of which the order proves another answer than occurred_at; true: by Time
	streams  map[int32]streamPoint // of an instant by resource version
}

// Includes reports whether a delta belongs to the point. It holds for points by seq and by resource version; one by time may hold deltas of
// after its Seq that were caught up on.
func (p *Point) Includes(d *Delta) bool {
	if p.RV != "" {
		return p.holds(d.Stream.ID, d.Seq, d.RV)
	}
	return d.Seq <= p.Seq
}

// Holds reports whether a delta belongs to the point, also one that was caught up on after its Seq. One of a life belongs to it if a later one does.
func (p *Point) Holds(d *Delta) bool {
	return p.Includes(d) || p.RV == "" && d.Seq <= p.Until && p.by(d.Seq, d.OccurredAt)
}

// Sure is the last seq up to which every delta of a scope belongs to the point.
func (p *Point) Sure(scope Scope) int64 { return p.sure(scope) }

// A streamPoint is where a resource version is in one stream.
type streamPoint struct {
	seq  int64 // last delta before the stream went beyond it
	from int64 // deltas from this seq on count by their resource version, those before it do anyway
	sure int64 // up to this seq all deltas count
}

// NoteKind says what an answer is to be taken with.
type NoteKind string

// Kinds of notes.
const (
	NoteEstimated  NoteKind = "estimated"  // times within a pause or an interruption are estimates
	NoteGap        NoteKind = "gap"        // versions may have been missed
	NoteNotYet     NoteKind = "not_yet"    // the resource was not recorded yet
	NoteAfterEnd   NoteKind = "after_end"  // the record ends before the instant
	NoteOneEtcd    NoteKind = "one_etcd"   // why a resource version counts for several resources
	NoteGeneration NoteKind = "generation" // the server's history went backwards
	NoteCheckpoint NoteKind = "checkpoint" // a checkpoint cannot be used: the answer is right, and slower
)

// A Note is what an answer is to be taken with.
type Note struct {
	Kind            NoteKind
	Group, Resource string    // "" if it is about all
	From, To        time.Time // of what it is about; zero where it has no such end
	Text            string    // a sentence for a person
}

// String is its text.
func (n Note) String() string { return n.Text }

// ErrBeforeRecord says that an instant is before the record began; errors.As finds a *BeforeRecordError.
var ErrBeforeRecord = errors.New("the instant is before the record began")

// A BeforeRecordError says when the record began.
type BeforeRecordError struct {
	Instant  Instant
	FirstAt  time.Time
	FirstSeq int64
	Pruned   bool // days before that were dropped
}

func (e *BeforeRecordError) Error() string {
	if e.Pruned {
		return fmt.Sprintf("%s is before what is left of the record, which begins at %s (seq:%d): the days before were dropped", e.Instant, e.Begin(), e.FirstSeq)
	}
	return fmt.Sprintf("%s is before the record began, at %s (seq:%d)", e.Instant, e.Begin(), e.FirstSeq)
}

// Begin is FirstAt as RFC 3339 in UTC, rounded up to a whole millisecond: short, and an instant of the record.
func (e *BeforeRecordError) Begin() string {
	return e.FirstAt.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).UTC().Format(time.RFC3339Nano)
}

// Is makes it ErrBeforeRecord.
func (e *BeforeRecordError) Is(target error) bool { return target == ErrBeforeRecord }

// ErrManyResources says that a resource version was asked of resources that one etcd need not serve.
var ErrManyResources = errors.New("a resource version counts for one resource")

// A DamagedError is a row of the record that does not fold to the version that was served.
type DamagedError struct {
	Seq             int64 // of the row
	ObjectID        int64
	Stream          *Stream
	Namespace, Name string
	Root            int64 // seq of the damaged row that this one is folded from; Seq, if it is damaged itself
	Err             error
}

func (e *DamagedError) Error() string {
	what := e.Name
	if e.Namespace != "" {
		what = e.Namespace + "/" + e.Name
	}
	resource := "object"
	if e.Stream != nil {
		resource = e.Stream.GroupResource().String()
	}
	if e.Root != 0 && e.Root != e.Seq {
		return fmt.Sprintf("seq %d of %s %s cannot be folded: it follows the damaged seq %d", e.Seq, resource, what, e.Root)
	}
	return fmt.Sprintf("seq %d of %s %s is damaged: %v", e.Seq, resource, what, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Why a row is damaged.
var (
	ErrDigest     = fold.ErrDigest
	ErrNoKeyframe = fold.ErrNoKeyframe
)

// A MissingDayError is a day whose deltas are on record in the table of days, and whose partition is gone.
type MissingDayError struct {
	Day               time.Time
	FirstSeq, LastSeq int64
	FirstAt, LastAt   time.Time // observed_at of these
}

func (e *MissingDayError) Error() string {
	return fmt.Sprintf("the deltas of %s (seq %d to %d) are not in the database: its partition was detached or dropped; attach it again, or ask for an instant that does not need it",
		e.Day.Format(time.DateOnly), e.FirstSeq, e.LastSeq)
}
