package delta

// State is how far a stream follows the server.
type State string

// The states of streams.
const (
	StateListing     State = "listing"     // not complete: the first list is due, or under way
	StateLive        State = "live"        // complete up to its position, and watched
	StateInterrupted State = "interrupted" // the stream cannot be followed: a gap is open
)
