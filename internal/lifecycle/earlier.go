package lifecycle

import "github.com/kuberewind/kuberewind/delta"

// Earlier says whether the stream is on record up to the end of the definitions before the present one.
type Earlier int

// What the record says of earlier definitions.
const (
	NotLookedUp Earlier = iota
	Whole               // the stream is on record to their end; a watch from the present definition shows the rest
	Partial             // it is not, or that is not known
	Behind              // the record of definitions has not come so far
)

// Definitions is what the record says of the earlier definitions of a resource.
type Definitions struct {
	Lives []Life // newest first
	// UpTo is the resource version up to which all definitions are on record, empty if that is not known.
	UpTo string
	// Blind says that others may have been missed, in a gap of the definitions.
	Blind bool
	// Watched is the version from which this process has watched definitions.
	Watched string
}

// Life is the life of a definition, by the versions of its creation and of its deletion. Created is empty if it is not on
// record, and Ended if the definition lives.
type Life struct {
	Created, Ended string
	Pruned         bool // when it ended is not on record any more
}

// Before says what is known of them, before the present definition begins. Position is how far the stream is on record.
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
		if life.Ended == "" && !life.Pruned { // There is another now.
			return Behind
		}
		// The follower has not passed over a life whose begin it saw. Begins is from before the life's end only if it is from its
		// begin, or earlier.
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
