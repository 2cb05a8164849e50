package lifecycle

import "github.com/kuberewind/kuberewind/delta"

// Earlier is whether the stream is on record up to the end of the definitions before the present one.
type Earlier int

// These are the answers of the record about earlier definitions.
const (
	NotLookedUp Earlier = iota
	Whole               // the stream is on record to their end; a watch from the present definition shows the rest
	Partial             // the stream is not on record to their end, or that is not known
	Behind              // the record of definitions has not come so far
)

// Definitions are the earlier definitions of a resource, as the record has them.
type Definitions struct {
	Lives []Life // newest first
	// UpTo is the resource version up to which all definitions are on record, empty if that is not known.
	UpTo string
	// Blind says that the recorder may have missed others, in a gap of the definitions.
	Blind bool
	// Watched is the version from which this process has watched definitions.
	Watched string
}

// Life is the life of a definition: the versions of its creation and of its deletion. Created is empty if it is not on
// record, and Ended if the definition is alive.
type Life struct {
	Created, Ended string
	Pruned         bool // when it ended is not on record any more
}

// Before returns the record's answer about the definitions before the present one. Position is how far the stream is on
// record.
func (d Definitions) Before(begins, position string) Earlier {
	switch {
	case d.UpTo == "":
		return Partial
	case delta.Precedes(d.UpTo, begins):
		return Behind
	case d.Blind:
		return Partial
	}
	for _, life := range d.Lives {
		if life.Ended == "" && !life.Pruned { // The record still lacks the end of this life.
			return Behind
		}
		// The follower does not skip a life whose creation it saw. So if begins comes before the life's end, it is
		// not later than the life's creation.
		if life.Created != "" && delta.Precedes(d.Watched, life.Created) && delta.Precedes(begins, life.Ended) {
			continue
		}
		if life.Pruned || delta.Precedes(position, life.Ended) {
			return Partial
		}
		return Whole
	}
	return Partial
}
