package session

import (
	"time"
)

// A State describes a session.
type State struct {
	Name    string    `json:"name"`
	Cluster string    `json:"cluster"` // the UID
	Path    string    `json:"path"`    // of the API root that follows the clock
	Owner   string    `json:"owner,omitempty"`
	Time    time.Time `json:"time"` // of the clock
	Seq     int64     `json:"seq"`  // of the root's answers
	Playing bool      `json:"playing"`
	Speed   float64   `json:"speed"`
	AtEnd   bool      `json:"atEnd"` // it plays, and waits for the record to grow
	Watches int       `json:"watches"`
	Expires time.Time `json:"expires,omitzero"` // if there is no request until then; zero while a request is open
	Problem string    `json:"problem,omitempty"`
	Notes   []string  `json:"notes,omitempty"` // limitations of answers at this instant
}

// Path returns the API root of a session.
func Path(cluster, name string) string { return "/clusters/" + cluster + "/session/" + name }

func (s *session) state(now time.Time) State {
	seq, watches := s.steps.root.Seq(), s.steps.root.Open()
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{
		Name: s.name, Cluster: s.cluster, Path: Path(s.cluster, s.name), Owner: s.owner, Time: s.clock.Time(now).UTC(), Seq: seq, Playing: s.clock.Playing(),
		Speed: s.clock.Speed(), AtEnd: s.atEnd, Watches: watches, Problem: s.problem,
	}
	if s.atEnd { // The clock waits at the end.
		state.Time = s.reached.UTC()
	}
	if expires := s.use.expires(); !expires.IsZero() {
		state.Expires = expires.UTC().Truncate(time.Second)
	}
	return state
}
