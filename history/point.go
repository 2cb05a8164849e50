package history

import (
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/internal/fold"
)

// Scope bounds a query; the zero value is the whole cluster.
type Scope struct {
	Streams   []int32 // of Record.Streams; nil means all
	Namespace string  // "" means all
	Name      string  // "" means all
}

// A Point is an instant that Resolve found in the record. It decides which deltas belong to the instant.
type Point struct {
	Instant Instant
	Seq     int64     // deltas up to this seq belong to it …
	RV      string    // … and not beyond this resource version, if not ""
	Time    time.Time // the instant as a time; ages are relative to it
	Until   int64     // deltas after Seq and up to this seq belong to it if they occurred by Time: they were recovered later; 0 means none
	Notes   []Note

	recorded time.Time             // the end of the record when Resolve found the point
	crossed  map[int64]bool        // deltas after Seq for which the order disproves occurred_at; true: they happened by Time
	streams  map[int32]streamPoint // for an instant by resource version
}

// Includes reports whether a delta belongs to the point, by seq or by resource version. For a point by time it does not see
// recovered deltas after Seq; Holds does.
func (p *Point) Includes(d *Delta) bool {
	if p.RV != "" {
		return p.holds(d.Stream.ID, d.Seq, d.RV)
	}
	return d.Seq <= p.Seq
}

// Holds reports whether a delta belongs to the point, including deltas after Seq that were recovered later. An earlier
// delta of a life belongs to the point if a later one does.
func (p *Point) Holds(d *Delta) bool {
	return p.Includes(d) || p.RV == "" && d.Seq <= p.Until && p.by(d.Seq, d.OccurredAt)
}

// CompleteUpTo returns the last seq up to which every delta of a scope belongs to the point.
func (p *Point) CompleteUpTo(scope Scope) int64 { return p.sure(scope) }

// A streamPoint is the position of a resource version in one stream.
type streamPoint struct {
	seq  int64 // last delta before the stream went beyond the resource version
	from int64 // deltas from this seq on count by their resource version; earlier ones always count
	sure int64 // up to this seq all deltas count
}

// NoteKind classifies notes.
type NoteKind string

// These are the kinds of notes.
const (
	NoteEstimated  NoteKind = "estimated"  // times within a pause or an interruption are estimates
	NoteGap        NoteKind = "gap"        // versions may have been missed
	NoteNotYet     NoteKind = "not_yet"    // the resource was not recorded yet
	NoteAfterEnd   NoteKind = "after_end"  // the record ends before the instant
	NoteOneEtcd    NoteKind = "one_etcd"   // why a resource version counts for several resources
	NoteGeneration NoteKind = "generation" // the server's history was rolled back
	NoteCheckpoint NoteKind = "checkpoint" // a checkpoint cannot be used: the answer is the same, but slower
)

// A Note qualifies an answer.
type Note struct {
	Kind            NoteKind
	Group, Resource string    // "" if the note is about the whole record
	From, To        time.Time // the period of the note; zero if it has no such end
	Text            string    // a sentence for a person
}

// String returns the text of the note.
func (n Note) String() string { return n.Text }

// ErrBeforeRecord says that an instant is before the record began; errors.As finds a *BeforeRecordError.
var ErrBeforeRecord = errors.New("the instant is before the record began")

// A BeforeRecordError says when the record begins.
type BeforeRecordError struct {
	Instant  Instant
	FirstAt  time.Time
	FirstSeq int64
	Pruned   bool // earlier days were dropped
}

func (e *BeforeRecordError) Error() string {
	if e.Pruned {
		return fmt.Sprintf("%s is before what is left of the record, which begins at %s (seq:%d): the days before were dropped", e.Instant, e.Begin(), e.FirstSeq)
	}
	return fmt.Sprintf("%s is before the record began, at %s (seq:%d)", e.Instant, e.Begin(), e.FirstSeq)
}

// Begin returns FirstAt as RFC 3339 in UTC, rounded up to a whole millisecond. The text is short, and an instant of the
// record.
func (e *BeforeRecordError) Begin() string {
	return e.FirstAt.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond).UTC().Format(time.RFC3339Nano)
}

// Is makes errors.Is find ErrBeforeRecord.
func (e *BeforeRecordError) Is(target error) bool { return target == ErrBeforeRecord }

// ErrManyResources says that a resource version was given for several resources that one etcd may not serve.
var ErrManyResources = errors.New("a resource version counts for one resource")

// A DamagedError is a row of the record that does not fold to the digest of its version.
type DamagedError struct {
	Seq             int64 // of the row
	ObjectID        int64
	Stream          *Stream
	Namespace, Name string
	Root            int64 // seq of the damaged row that this one depends on; Seq, if this row is damaged itself
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

// These errors say why a row is damaged.
var (
	ErrDigest     = fold.ErrDigest
	ErrNoKeyframe = fold.ErrNoKeyframe
)

// A MissingDayError is a day that the table of days lists, but whose partition is gone.
type MissingDayError struct {
	Day               time.Time
	FirstSeq, LastSeq int64
	FirstAt, LastAt   time.Time // observed_at of these
}

func (e *MissingDayError) Error() string {
	return fmt.Sprintf("the deltas of %s (seq %d to %d) are not in the database: its partition was detached or dropped; attach it again, or ask for an instant that does not need it",
		e.Day.Format(time.DateOnly), e.FirstSeq, e.LastSeq)
}
