// Package paging stops lists that a server would continue without end. It does not read lists: the reader that follows the
// continue tokens of a list passes each token to a Guard.
package paging

import (
	"crypto/sha256"
	"fmt"
)

// MaxPages is more pages than a list can have: pages of 500 objects would hold 50 million objects, and etcd holds 8 GiB.
const MaxPages = 100_000

// A Guard holds the tokens of one list. The zero value is ready for a new list. A Guard is not safe for concurrent use.
type Guard struct {
	seen map[[sha256.Size]byte]struct{} // digests, because a server chooses how long its tokens are
}

// Next adds the token that continues the list. It returns an error if the list would never end: the server repeated a token,
// or the list has too many pages.
func (g *Guard) Next(token string) error {
	digest := sha256.Sum256([]byte(token))
	if _, ok := g.seen[digest]; ok {
		return fmt.Errorf("the server repeated a continue token after %d pages: the list would never end", len(g.seen))
	}
	if len(g.seen) == MaxPages {
		return fmt.Errorf("the server continues the list after %d pages, which is more than a list can have", MaxPages)
	}
	if g.seen == nil {
		g.seen = map[[sha256.Size]byte]struct{}{}
	}
	g.seen[digest] = struct{}{}
	return nil
}
