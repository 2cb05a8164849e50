package indexer

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/patch"
)

// An entry is one object. It never changes, so readers need no lock once they hold one.
type entry struct {
	key    string
	packed []byte   // an s2 block
	dict   *s2.Dict // that it was packed with, or nil
}

func byKey(a, b *entry) int { return strings.Compare(a.key, b.key) }

// doc gives the text.
func (e *entry) doc() patch.Doc { return e.unpack(nil) }

// unpack gives the text, in the memory of dst if it has room. Text that pack has packed is always sound.
func (e *entry) unpack(dst []byte) patch.Doc {
	decode := s2.Decode
	if e.dict != nil {
		decode = e.dict.Decode
	}
	doc, err := decode(dst, e.packed)
	if err != nil {
		panic("indexer: the packed object " + e.key + " is damaged in memory: " + err.Error())
	}
	return doc
}

// sampled is how many bytes of objects make a dictionary: enough for a few of any kind. Twice as much saves 2 % of a Pod, and
// costs the tables of every resource as much again.
const sampled = 32 << 10

// A packer compresses the objects of one resource. The first texts are the dictionary for later ones.
type packer struct {
	dict atomic.Pointer[s2.Dict]

	mu     sync.Mutex // protects sample
	sample []byte
}

// buffers keeps the memory that texts are packed into.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (p *packer) pack(key string, doc patch.Doc) *entry {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	e := &entry{key: strings.Clone(key), dict: p.dict.Load()}
	var packed []byte
	if e.dict == nil {
		p.learn(doc)
		packed = s2.Encode((*buffer)[:cap(*buffer)], doc)
	} else {
		packed = e.dict.Encode((*buffer)[:cap(*buffer)], doc)
	}
	*buffer = packed
	e.packed = append(make([]byte, 0, len(packed)), packed...)
	return e
}

// learn takes a text into the sample. A long text counts by its beginning, which holds the metadata.
func (p *packer) learn(doc patch.Doc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dict.Load() != nil {
		return
	}
	p.sample = append(p.sample, doc[:min(len(doc), sampled/2)]...)
	if len(p.sample) < sampled {
		return
	}
	p.dict.Store(s2.MakeDict(p.sample, []byte(`{"apiVersion":"`)))
	p.sample = nil
}
