package postgres

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// ItemKind is the kind of an Item.
type ItemKind uint8

const (
	// Delta is a change of one object.
	Delta ItemKind = iota + 1
	// Position moves the stream's position and nothing else. It is a bookmark or, with the source "watch", an event
	// that is not recorded because a filter excluded it.
	Position
	// Marked is a fact about the stream, in Marker.
	Marked
	// Excluded says that a label filter excludes an object for its whole life (UID, and Key or Object).
	Excluded
	// Unexcluded ends an exclusion, because the life has ended (UID).
	Unexcluded
)

// An Item is one thing that happened on a stream. The items of a stream arrive in the order in which they happened.
type Item struct {
	Stream   int32 // Stream.ID
	Kind     ItemKind
	Type     delta.Type   // of a Delta
	Source   delta.Source // of a Delta; see Position
	Observed time.Time    // when the recorder saw it; if it goes back, the sink uses the last one
	Occurred time.Time    // best evidence of when it happened; zero means Observed
	Object   Object       // nil for inferred deletes, and for all but a Delta

	Key string    // "namespace/name" or "name", if there is no Object
	UID types.UID // if there is no Object; empty matches any
	RV  string    // if there is no Object: for inferred deletes, the list's

	Position string       // the stream is complete up to this resource version with this item; "" if it does not move
	Version  string       // API version in which the object was served
	Marker   delta.Marker // of Marked
}

// Object is one version of an object, in the form in which it is to be recorded. If it has a method Digest() [16]byte,
// the sink uses its result as the digest of Doc.
type Object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	Doc() patch.Doc
}
