package indexer

import (
	"fmt"
	"sync"

	"github.com/kuberewind/kuberewind/patch"
)

// A codec makes objects of texts.
type codec struct {
	decode func(patch.Doc) (any, error)
	custom bool // decode is Options.Decode
}

func newCodec(decode func(patch.Doc) (any, error)) *codec {
	if decode == nil {
		return &codec{decode: decodeUnstructured}
	}
	return &codec{decode: decode, custom: true}
}

// check returns an error if a text cannot be decoded. This package's own decoder decodes every text.
func (c *codec) check(key string, doc patch.Doc) error {
	if c.custom {
		if _, err := c.decode(doc); err != nil {
			return fmt.Errorf("decode %q: %w", key, err)
		}
	}
	return nil
}

func (c *codec) decoded(e *entry) (any, error) {
	object, err := c.made(e)
	if err != nil {
		return nil, fmt.Errorf("decode %q: %w", e.key, err)
	}
	return object, nil
}

// made decodes an entry. Options.Decode may keep the text; Decode does not.
func (c *codec) made(e *entry) (any, error) {
	if c.custom {
		return c.decode(e.doc())
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = e.unpack((*buffer)[:cap(*buffer)])
	return c.decode(*buffer)
}

// lazily decodes a text at most once, for the index functions that need the object.
func (c *codec) lazily(doc patch.Doc) func() (any, error) {
	return sync.OnceValues(func() (any, error) { return c.decode(doc) })
}
