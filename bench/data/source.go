package data

// Source says where a Set comes from, for processes that tell each other: from a recording, if there is a path, or else generated.
type Source struct {
	Path     string
	Settings Settings
}

// Open gives the Set.
func (s Source) Open() (Set, error) {
	if s.Path != "" {
		return Open(s.Path)
	}
	return Generate(s.Settings)
}
