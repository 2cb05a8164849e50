package data

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// chance draws what is different in each object.
type chance struct{ random *rand.Rand }

func (c *chance) hex(digits int) string {
	text := make([]byte, 0, digits)
	for len(text) < digits {
		text = fmt.Appendf(text, "%016x", c.random.Uint64())
	}
	return string(text[:digits])
}

func (c *chance) uid() string {
	h := c.hex(32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// suffix is what the API server adds to a generateName.
func (c *chance) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	text := make([]byte, 5)
	for i := range text {
		text[i] = letters[c.random.IntN(len(letters))]
	}
	return string(text)
}

// jitter is a time of about d.
func (c *chance) jitter(d time.Duration) time.Duration {
	return d*4/5 + time.Duration(c.random.Int64N(int64(d)*2/5+1))
}
