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
	dict   *s2.Dict // the dictionary that it was packed with, or nil
}

func byKey(a, b *entry) int { return strings.Compare(a.key, b.key) }

// doc returns the text.
func (e *entry) doc() patch.Doc { return e.unpack(nil) }

// unpack returns the text, in the memory of dst if it has room. A text that pack has packed can always be unpacked.
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

// sampled is how many bytes of objects make a dictionary: enough for a few objects of any kind. Twice as much saves 2 %
// of a Pod, and doubles the memory of the tables of every resource.
const sampled = 32 << 10

// A packer compresses the objects of one resource. The first texts are the dictionary for later ones.
type packer struct {
	dict atomic.Pointer[s2.Dict]

	mu     sync.Mutex // protects sample
	sample []byte
}

// buffers keeps the memory for packing texts.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (p *packer) pack(key string, doc patch.Doc) *entry {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	e := &entry{key: strings.Clone(key), dict: p.dict.Load()}
	var packed []byte
	if e.dict == nil {
		p.addSample(doc)
		packed = s2.Encode((*buffer)[:cap(*buffer)], doc)
	} else {
		packed = e.dict.Encode((*buffer)[:cap(*buffer)], doc)
	}
	*buffer = packed
	e.packed = append(make([]byte, 0, len(packed)), packed...)
	return e
}

// addSample adds a text to the sample. Of a long text it adds the beginning, which holds the metadata.
func (p *packer) addSample(doc patch.Doc) {
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
