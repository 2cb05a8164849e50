package chain

import (
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// A Delta holds the columns of a row of deltas_data that the digest covers. Times are in microseconds since 1970.
type Delta struct {
	Seq, ObjectID      int64
	Observed, Occurred int64
	Stream             int32
	Kind, Source       int16
	Evidence           int16 // of the manager, 0 is NULL
	RV, Version        string
	Manager            string // "" is NULL
	Hint               string // of a manager, "" is NULL
	Subresource        string // "" is NULL
	Digest             [16]byte
}

// A Life holds the columns of a row of lives that the digest covers.
type Life struct {
	ObjectID             int64
	Stream               int32
	Namespace, Name, UID string
}

// An End is a row of ends.
type End struct{ ObjectID, Seq int64 }

// A Gap holds the columns of a row of gaps_data that the digest covers. Times are in microseconds since 1970.
type Gap struct {
	Number  int64
	Stream  int32
	Cause   delta.Cause
	Detail  string
	FromRV  *string
	FromAt  *int64
	ToRV    *string
	ToAt    *int64
	Outcome delta.Outcome
	Counts  *[4]int64 // appeared, changed, vanished, unchanged
}

// An Erasure is a row of erasures_data: what was erased, when, by whom and why.
type Erasure struct {
	Number      int64
	At          time.Time
	By          string
	Reason      string
	Scope       string // where the value was searched, "" for everywhere
	Fingerprint []byte // a keyed hash of the value
	Deltas      int64
	Objects     int64
	Documents   int64
}

// An ErasedDelta is a delta that an erasure changes, with its digests. The digest of its batch covers Before.
type ErasedDelta struct {
	Seq           int64
	Before, After [16]byte
}

// A Batch holds the columns of a row of batches that the digest covers. Its time is in microseconds since 1970.
type Batch struct {
	Cluster           int32
	Epoch, Number     int64
	FirstSeq, LastSeq int64
	Observed          int64
}
