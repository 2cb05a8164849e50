package history

import (
	"time"

	"github.com/kuberewind/kuberewind/patch"
)

// An Object is one that was live at a Point.
type Object struct {
	ObjectID               int64
	Seq                    int64 // of its last delta
	Stream                 *Stream
	Namespace, Name, UID   string
	RV, Version            string
	Doc                    patch.Doc // shares memory with others: copy what is to be kept for long
	ObservedAt, OccurredAt time.Time // of its last delta; zero if it came from a checkpoint
}

// Progress says how far a rebuild or a verification is.
type Progress struct {
	Stage       string // what is being done
	Done, Total int64  // Total is 0 if it is not known
}

// RebuildOptions of Rebuild.
type RebuildOptions struct {
	// Damaged is called with each object that cannot be given; nil: the first one ends the rebuild. It must be safe for
	// concurrent use.
	Damaged func(*DamagedError)
	// Progress is called now and then, by one goroutine at a time.
	Progress func(Progress)
	// NoCheckpoint folds everything from the deltas.
	NoCheckpoint bool
}

// RebuildStats say what a rebuild did.
type RebuildStats struct {
	Objects    int64  // emitted
	Damaged    int64  // told to RebuildOptions.Damaged
	Checkpoint int64  // seq of the checkpoint that was used, 0 for none
	Tail       int64  // deltas read
	Notes      []Note // such as why a checkpoint could not be used
}

// A Life is one object from creation to deletion.
type Life struct {
	ObjectID             int64 // seq of its first delta
	Stream               *Stream
	Namespace, Name, UID string
	DeletedSeq           int64 // 0 while it lives
}

// A LifeQuery says which lives are asked for. Zero values do not bound.
type LifeQuery struct {
	Scope
	UID string
	// UIDs and ObjectIDs are lives of which any is asked for; nil does not bound.
	UIDs      []string
	ObjectIDs []int64
	LiveAt    int64 // those that are live at this seq
	// BornBy leaves out lives that began after this seq. EndedAfter, if set, leaves out lives that ended by that seq.
	BornBy, EndedAfter int64
	// MayReferTo leaves out lives that do not refer to an object. They have other owners or none, or they are Events whose name says another object. Such a
	// name is client-go's form, and other programs are expected not to use it otherwise. Owners of lives that began before the first delta that is left are
	// not known here, so these lives are not left out.
	MayReferTo *Life

	ownersSince int64 // the first seq from which lives tell their owners
}
