package history

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// A Delta is one change of one object, as it was recorded.
type Delta struct {
	Seq, ObjectID          int64
	Stream                 *Stream
	Namespace, Name, UID   string
	Type                   cache.DeltaType // Added, Updated, Deleted or Sync
	Source                 string          // watch, list, relist, resync, schema or inferred
	ObservedAt, OccurredAt time.Time
	RV, Version            string
	Manager, Subresource   string // of the writer; "" if nothing proves who wrote
	Evidence               string // entry, owner or none: how managedFields prove the manager
	ManagerHint            string // owner of what vanished, perhaps not the remover; "" if there is none
	Digest                 [16]byte
	Patch                  []byte    // canonical; nil if there is none
	Object                 patch.Doc // exact; nil but on keyframes
}

// A Version is a delta with the object after it; after a deletion, the last one.
type Version struct {
	Delta
	Doc    patch.Doc
	Before patch.Doc // nil for the first of a life
}

// Query bounds a reading. Zero values do not bound.
type Query struct {
	Scope
	ObjectID       int64
	ObjectIDs      []int64 // these lives and no others, whatever else is asked for; nil does not bound
	UID            string
	FromSeq, ToSeq int64     // inclusive
	From, To       time.Time // of observed_at, inclusive
	Types          []cache.DeltaType
}

var typeNames = [...]cache.DeltaType{1: cache.Added, 2: cache.Updated, 3: cache.Deleted, 4: cache.Sync}

const typeDeleted = 3

func typeName(n int16) cache.DeltaType {
	if n > 0 && int(n) < len(typeNames) {
		return typeNames[n]
	}
	return cache.DeltaType(strconv.Itoa(int(n)))
}

func typeNumbers(types []cache.DeltaType) ([]int16, error) {
	var numbers []int16
	for _, t := range types {
		n := int16(0)
		for i := 1; i < len(typeNames); i++ {
			if typeNames[i] == t {
				n = int16(i)
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("%q is no type of delta: use Added, Updated, Deleted or Sync", t)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// EvidenceNone says that nothing proves who wrote.
const EvidenceNone = "none"

var evidenceNames = [...]string{1: "entry", 2: "owner", 3: EvidenceNone}

// evidenceName treats a manager without evidence as unproved.
func evidenceName(n int16) string {
	if n > 0 && int(n) < len(evidenceNames) {
		return evidenceNames[n]
	}
	return EvidenceNone
}

var sourceNames = [...]string{1: "watch", 2: "list", 3: "relist", 4: "resync", 5: "schema", 6: "inferred"}

const sourceWatch = 1

func sourceName(n int16) string {
	if n > 0 && int(n) < len(sourceNames) {
		return sourceNames[n]
	}
	return strconv.Itoa(int(n))
}
