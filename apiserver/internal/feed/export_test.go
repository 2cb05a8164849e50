package feed

// Kept returns how many bytes the Feed keeps.
func (f *Feed) Kept() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.backlog.bytes
}
