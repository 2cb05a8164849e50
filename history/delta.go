package history

import (
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A Delta is one recorded change of one object.
type Delta struct {
	Seq, ObjectID          int64
	Stream                 *Stream
	Namespace, Name, UID   string
	Type                   delta.Type // Added, Updated, Deleted or Sync
	Source                 delta.Source
	ObservedAt, OccurredAt time.Time
	RV, Version            string
	Manager, Subresource   string // of the writer; "" if nothing proves the writer
	Evidence               string // entry, owner or none: how managedFields prove the manager
	ManagerHint            string // owner of the removed fields, perhaps not the remover; "" if there is none
	Digest                 [16]byte
	Patch                  []byte    // canonical; nil if there is none
	Object                 patch.Doc // exact; only keyframes have it
}

// A Version is a delta with the object after it. After a deletion, Doc is the last state.
type Version struct {
	Delta
	Doc    patch.Doc
	Before patch.Doc // nil for the first version of a life
}

// Query bounds a reading. Zero values do not bound.
type Query struct {
	Scope
	ObjectID       int64
	ObjectIDs      []int64 // only these lives, whatever the other fields say; nil does not bound
	UID            string
	FromSeq, ToSeq int64     // inclusive
	From, To       time.Time // of observed_at, inclusive
	Types          []delta.Type
}

func typeNumbers(types []delta.Type) ([]int16, error) {
	var numbers []int16
	for _, t := range types {
		n, ok := delta.TypeNumber(t)
		if !ok {
			return nil, fmt.Errorf("%q is not a type of delta: use Added, Updated, Deleted or Sync", t)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// EvidenceNone says that nothing proves the writer.
const EvidenceNone = "none"

var evidenceNames = [...]string{1: "entry", 2: "owner", 3: EvidenceNone}

// evidenceName treats a manager without evidence as unproved.
func evidenceName(n int16) string {
	if n > 0 && int(n) < len(evidenceNames) {
		return evidenceNames[n]
	}
	return EvidenceNone
}
