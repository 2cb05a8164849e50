package postgres

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
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
	// Marked says that Marker is a fact about the stream.
	Marked
	// Excluded says that a label filter leaves an object out, for its whole life (UID, and Key or Object).
	Excluded
	// Unexcluded takes that back: the life has ended (UID).
	Unexcluded
)

// An Item is one thing that happened on a stream. The items of a stream come in the order in which it happened.
type Item struct {
	Stream   int32 // Stream.ID
	Kind     ItemKind
	Type     delta.Type   // of a Delta
	Source   delta.Source // of a Delta; see Position
	Observed time.Time    // when the recorder saw it; must not go back, and is held at the last one where it does
	Occurred time.Time    // best evidence of when it happened; zero means Observed
	Object   Object       // nil for inferred deletes and for what is not a Delta

	Key string    // "namespace/name" or "name", where there is no Object
	UID types.UID // where there is no Object; empty matches any
	RV  string    // where there is no Object: the list's for inferred deletes

	Position string       // resource version up to which the stream is complete with this item, "" if it does not move
	Version  string       // API version in which the object was served
	Marker   delta.Marker // of Marked
}

// Object is one version of an object, as it is to be recorded. If it has a method Digest() [16]byte, that is taken for the digest of Doc.
type Object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	Doc() patch.Doc
}
