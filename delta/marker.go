package delta

import "time"

// MarkerKind is the kind of a Marker.
type MarkerKind string

// The kinds of markers.
const (
	Interrupted MarkerKind = "interrupted" // the stream cannot go on: a gap opens
	Resumed     MarkerKind = "resumed"     // the stream goes on, and nothing was missed: the gap closes
	Replaced    MarkerKind = "replaced"    // a list is complete, up to ToRV: the gap closes, or the list is itself a gap
	Compared    MarkerKind = "compared"    // every living object was compared with a list under the schema in Detail
)

// Marker is a fact about a stream, not about an object. It says where versions may have been missed.
type Marker struct {
	Kind   MarkerKind
	Cause  Cause
	Detail string
	// FromRV is the position before, "" if the writer of the marker does not know it. FromTime is when the stream
	// reached it, zero if that is not known.
	FromRV   string
	FromTime time.Time
	// ToRV is the resource version of the list. For Resumed it is the version from which the stream goes on, "" for its
	// position.
	ToRV string
	// Rules are the filter rules of the list.
	Rules string
	// Appeared, Changed, Vanished and Unchanged compare the list with the record. An object that was recreated under
	// its name has vanished and appeared.
	Appeared, Changed, Vanished, Unchanged int
}
