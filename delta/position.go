package delta

// Position says how far a stream has come. The zero value is before everything: the stream has to be listed.
//
// Several deletes can share one resource version: Events that expire with one etcd lease are deleted in one transaction. A watch goes
// on strictly after its resource version. So while more deletes may follow, the stream is complete only up to the version before (I2).
// No other event shares its version, because the API server writes one object in a transaction.
type Position struct {
	Complete string // everything up to here was given: a watch goes on from here. "" if nothing is complete
	Newest   string // the newest that was given. It differs from Complete while more may have it
}

// At is the position of a stream that is complete up to a resource version, as a list is.
func At(version string) Position { return Position{Complete: version, Newest: version} }

// Resumable reports whether a watch from a resource version is a continuation. "" and "0" have other meanings.
func Resumable(version string) bool { return version != "" && version != "0" }

// Open reports whether more may have the newest version than was given.
func (p Position) Open() bool { return p.Complete != p.Newest }

// Reaches reports whether the stream is complete up to a resource version, or further.
func (p Position) Reaches(version string) bool {
	return !Precedes(p.Newest, version) && (version != p.Newest || !p.Open())
}

// See notes an event that completes nothing, because a list is under way. It reports whether that is the newest.
func (p *Position) See(version string) bool {
	if !Resumable(version) || !Passes(version, p.Newest) {
		return false
	}
	p.Newest = version
	return true
}

// Advance notes an event of a watch, and reports whether that is the newest. deleted says that others may share its version. The position
// does not go back, and events without a version leave it where it is. Before the first list, nothing becomes complete.
func (p *Position) Advance(version string, deleted bool) bool {
	before := p.Newest
	if !p.See(version) {
		return false
	}
	switch {
	case p.Complete == "":
	case deleted:
		p.Complete = before
	default:
		p.Complete = version
	}
	return true
}

// Bookmark notes that everything up to a version was given, and reports whether the position is at that version now. It does not go back.
func (p *Position) Bookmark(version string) bool {
	if !Resumable(version) || Precedes(version, p.Newest) {
		return false
	}
	*p = At(version)
	return true
}

// Settle notes that no more deletes of the newest version follow.
func (p *Position) Settle() {
	if p.Complete != "" {
		p.Complete = p.Newest
	}
}
