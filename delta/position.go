package delta

// Position is how far a stream has come. The zero value is before everything: the stream has to be listed.
//
// Several deletes can share one resource version: Events that expire with one etcd lease are deleted in one
// transaction. A watch goes on strictly after its resource version. So while more deletes may follow, the stream is
// complete only up to the previous version (I2). No other event shares its version, because the API server writes one
// object in a transaction.
type Position struct {
	Complete string // everything up to here was served: a watch goes on from here. "" if nothing is complete
	Newest   string // the newest served version. It differs from Complete while more events may have it
}

// At returns the position of a stream that is complete up to a resource version, for example after a list.
func At(version string) Position { return Position{Complete: version, Newest: version} }

// Resumable reports whether a watch from a resource version is a continuation. "" and "0" have other meanings.
func Resumable(version string) bool { return version != "" && version != "0" }

// Open reports whether more events may have the newest version.
func (p Position) Open() bool { return p.Complete != p.Newest }

// Reaches reports whether the stream is complete up to a resource version, or further.
func (p Position) Reaches(version string) bool {
	return !Precedes(p.Newest, version) && (version != p.Newest || !p.Open())
}

// See notes an event that completes nothing, because a list is under way. It reports whether its version is the newest.
func (p *Position) See(version string) bool {
	if !Resumable(version) || !Passes(version, p.Newest) {
		return false
	}
	p.Newest = version
	return true
}

// Advance notes an event of a watch, and reports whether its version is the newest. If deleted is true, more events may
// share the version. The position does not go back, and an event without a version does not move it. Before the first
// list, nothing becomes complete.
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

// Bookmark notes that everything up to a version was served, and reports whether the position is at that version now.
// The position does not go back.
func (p *Position) Bookmark(version string) bool {
	if !Resumable(version) || Precedes(version, p.Newest) {
		return false
	}
	*p = At(version)
	return true
}

// CompleteNewest notes that no more deletes of the newest version follow.
func (p *Position) CompleteNewest() {
	if p.Complete != "" {
		p.Complete = p.Newest
	}
}
