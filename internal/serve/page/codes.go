package page

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// Lifetime is how long a code can be exchanged.
const Lifetime = 60 * time.Second

// mostLinks bounds the links in memory.
const mostLinks = 1024

// A digest replaces a secret, so that no secret is stored, and none is compared byte by byte.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// Codes are the codes of links, and the tokens that they were exchanged for. They exist only in memory. They are safe for
// concurrent use.
type Codes struct {
	mu      sync.Mutex // protects what follows
	links   []*link    // the oldest first
	byCode  map[digest]*link
	byToken map[digest]*link
}

// A link is a code that was given to a user.
type link struct {
	code, token digest // token is set by the first use
	made        time.Time
	used        chan struct{} // closed by the first use
}

func (l *link) wasUsed() bool {
	select {
	case <-l.used:
		return true
	default:
		return false
	}
}

// NewCodes returns an empty set of codes.
func NewCodes() *Codes { return &Codes{byCode: map[digest]*link{}, byToken: map[digest]*link{}} }

// New makes a single-use code.
func (c *Codes) New() string {
	code := serve.NewToken()
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &link{code: digestOf(code), made: time.Now(), used: make(chan struct{})}
	c.links, c.byCode[l.code] = append(c.links, l), l
	if len(c.links) > mostLinks {
		c.forget(c.links[0])
		c.links = c.links[1:]
	}
	return code
}

func (c *Codes) forget(l *link) {
	delete(c.byCode, l.code)
	delete(c.byToken, l.token)
}

// Exchange returns a token for a code. If it returns an error, that error is the answer.
func (c *Codes) Exchange(code string) (token string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.byCode[digestOf(code)]
	switch {
	case l == nil:
		return "", refused("the code of this link is unknown")
	case l.wasUsed():
		delete(c.byToken, l.token) // Two clients have the code, and only one of them should.
		return "", refused("the code of this link was used before, so the token that it gave is revoked")
	case time.Since(l.made) >= Lifetime:
		return "", refused("the code of this link is older than " + Lifetime.String())
	}
	token = serve.NewToken()
	l.token = digestOf(token)
	c.byToken[l.token] = l
	close(l.used)
	return token, nil
}

func refused(what string) error {
	return apierrors.NewUnauthorized(what + `: run "replay open" for a new link`)
}

// Authenticate implements serve.Authenticator.
func (c *Codes) Authenticate(r *http.Request) (*http.Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byToken[digestOf(serve.Bearer(r))] == nil {
		return nil, refused("the token is missing, or belongs to another server: each start of replay serve makes new tokens")
	}
	return serve.Local(r), nil
}

// Await waits until a code is used. used is false if the code expired first, or is unknown.
func (c *Codes) Await(ctx context.Context, code string) (used bool, err error) {
	c.mu.Lock()
	l := c.byCode[digestOf(code)]
	c.mu.Unlock()
	if l == nil {
		return false, nil
	}
	rest := time.NewTimer(Lifetime - time.Since(l.made))
	defer rest.Stop()
	select {
	case <-l.used:
		return true, nil
	case <-rest.C:
		return l.wasUsed(), nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
