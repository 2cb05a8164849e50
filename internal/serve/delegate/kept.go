package delegate

import (
	"crypto/rand"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// keptFor is the most age of a cached answer of a live API.
	keptFor = 10 * time.Second
	// mostKept bounds the cached answers.
	mostKept = 4096
)

// kept caches the answers of the last seconds.
type kept struct {
	answers *cache.LRUExpireCache // of answer
	secret  []byte
}

type answer struct {
	value any
	err   error
}

type clock func() time.Time

func (c clock) Now() time.Time { return c() }

func newKept(now func() time.Time) *kept {
	return &kept{answers: cache.NewLRUExpireCacheWithClock(mostKept, clock(now)), secret: []byte(rand.Text())}
}

func (k *kept) key(uid string, c *credential, question ...string) string {
	return c.digest(k.secret, uid, question)
}

// remember returns the cached answer, or else asks. It caches answers and Unauthorized errors, but no other error.
func remember[T any](k *kept, key string, ask func() (T, error)) (T, error) {
	if known, ok := k.answers.Get(key); ok {
		a := known.(answer)
		value, _ := a.value.(T)
		return value, a.err
	}
	value, err := ask()
	if err == nil || apierrors.IsUnauthorized(err) {
		k.answers.Add(key, answer{value: value, err: err}, keptFor)
	}
	return value, err
}
