package history

import (
	"time"

	"github.com/kuberewind/kuberewind/patch"
)

// An Object is an object that was live at a Point.
type Object struct {
	ObjectID               int64
	Seq                    int64 // of its last delta
	Stream                 *Stream
	Namespace, Name, UID   string
	RV, Version            string
	Doc                    patch.Doc // shares memory with others: copy what you keep for long
	ObservedAt, OccurredAt time.Time // of its last delta; zero if the object came from a checkpoint unchanged
}

// Progress says how far a rebuild or a verification has come.
type Progress struct {
	Stage       string // the current stage
	Done, Total int64  // Total is 0 if it is unknown
}

// RebuildOptions are the options of Rebuild.
type RebuildOptions struct {
	// Damaged receives each object that does not fold to its digest. If it is nil, the first such object ends the rebuild.
	// It must be safe for concurrent use.
	Damaged func(*DamagedError)
	// Progress is called from time to time, by one goroutine at a time.
	Progress func(Progress)
	// NoCheckpoint makes Rebuild fold everything from the deltas.
	NoCheckpoint bool
}

// RebuildStats count what a rebuild did.
type RebuildStats struct {
	Objects    int64  // emitted
	Damaged    int64  // passed to RebuildOptions.Damaged
	Checkpoint int64  // seq of the checkpoint that was used, 0 for none
	Tail       int64  // deltas read
	Notes      []Note // for example, why a checkpoint could not be used
}

// A Life is one object from creation to deletion.
type Life struct {
	ObjectID             int64 // seq of its first delta
	Stream               *Stream
	Namespace, Name, UID string
	DeletedSeq           int64 // 0 while the object lives
}

// A LifeQuery selects lives. Zero values do not bound.
type LifeQuery struct {
	Scope
	UID string
	// UIDs and ObjectIDs select the lives with any of these; nil does not bound.
	UIDs      []string
	ObjectIDs []int64
	LiveAt    int64 // only lives that are live at this seq
	// BornBy excludes lives that began after this seq. EndedAfter, if set, excludes lives that ended at or before that seq.
	BornBy, EndedAfter int64
	// MayReferTo excludes lives that cannot refer to this object: those that do not name it as an owner. An Event without
	// such an owner is excluded only if its name has client-go's form and names another object. If a life
	// began before the first remaining delta, its owners are unknown here, so it is not excluded.
	MayReferTo *Life

	ownersSince int64 // the first seq from which lives have their owners on record
}
