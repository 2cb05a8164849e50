package postgres

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/patch"
)

// ItemKind says what an Item is.
type ItemKind uint8

const (
	// Delta is a change of one object.
	Delta ItemKind = iota + 1
	// Position moves the stream's position and nothing else: a bookmark, or, with the source "watch", an event that is not
	// recorded (a filter left it out).
	Position
	// Interrupted says that the stream cannot be followed; Marker says why. It opens a gap.
	Interrupted
	// Resumed says that the stream goes on where it was interrupted, and nothing was missed. It closes the gap.
	Resumed
	// Replaced says that a whole list has been recorded, up to Marker.ToRV. It closes the gap, or is one.
	Replaced
	// Excluded says that a label filter leaves an object out, for its whole life (UID, and Key or Object).
	Excluded
	// Unexcluded takes that back: the life has ended (UID).
	Unexcluded
	// Compared says that every living object was held against what the server serves under a schema, Marker.Detail, and that the differences are on record.
	Compared
)

// Types of deltas, as in client-go.
const (
	Added   = "Added"
	Updated = "Updated"
	Deleted = "Deleted"
	Sync    = "Sync"
)

// Sources of deltas.
const (
	SourceWatch    = "watch"
	SourceList     = "list"
	SourceRelist   = "relist"
	SourceResync   = "resync"
	SourceSchema   = "schema"
	SourceInferred = "inferred"
)

// An Item is one thing that happened on a stream. The items of a stream come in the order in which it happened.
type Item struct {
	Stream   int32 // Stream.ID
	Kind     ItemKind
	Type     string    // of a Delta
	Source   string    // of a Delta; see Position
	Observed time.Time // when the recorder saw it; must not go back, and is held at the last one where it does
	Occurred time.Time // best evidence of when it happened; zero means Observed
	Object   Object    // nil for inferred deletes and for what is not a Delta

	Key string    // "namespace/name" or "name", where there is no Object
	UID types.UID // where there is no Object; empty matches any
	RV  string    // where there is no Object: the list's for inferred deletes

	Position string // resource version up to which the stream is complete with this item, "" if it does not move
	Version  string // API version in which the object was served
	Marker   Marker // of Interrupted, Resumed and Replaced
}

// A Marker describes a stretch of a stream in which versions may have been missed.
type Marker struct {
	Cause    string
	Detail   string
	FromRV   string    // "" means the stream's position
	ToRV     string    // of Replaced: of the list; of Resumed: "" means the stream's position
	FromTime time.Time // zero means when the position last moved
	Filter   string    // of Replaced: under which the list was taken in; see StreamSpec

	Appeared, Changed, Vanished, Unchanged int // of Replaced: how the list compared with what was recorded
}

// Object is one version of an object, as it is to be recorded. If it has a method Digest() [16]byte, that is taken for the digest of Doc.
type Object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	Doc() patch.Doc
}

// The numbers under which types and sources are stored.
const (
	typeAdded, typeUpdated, typeDeleted, typeSync = 1, 2, 3, 4

	sourceWatch, sourceList, sourceRelist, sourceResync, sourceSchema, sourceInferred = 1, 2, 3, 4, 5, 6
)

func typeNumber(t string) (int16, bool) {
	switch t {
	case Added:
		return typeAdded, true
	case Updated:
		return typeUpdated, true
	case Deleted:
		return typeDeleted, true
	case Sync:
		return typeSync, true
	}
	return 0, false
}

func sourceNumber(s string) (int16, bool) {
	switch s {
	case SourceWatch:
		return sourceWatch, true
	case SourceList:
		return sourceList, true
	case SourceRelist:
		return sourceRelist, true
	case SourceResync:
		return sourceResync, true
	case SourceSchema:
		return sourceSchema, true
	case SourceInferred:
		return sourceInferred, true
	}
	return 0, false
}
