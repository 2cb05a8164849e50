package delta

// State says how far a stream follows the server.
type State string

// The states of streams.
const (
	StateListing     State = "listing"     // not complete: a list has to come, or to end
	StateLive        State = "live"        // complete up to its position, and watched
	StateInterrupted State = "interrupted" // it cannot be followed: a gap is open
)
