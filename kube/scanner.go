package kube

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads objects from a JSON stream in one pass: what is needed is decoded
// on the way, and the text is cut out of the tape.
//
// Duplicate names and invalid UTF-8 are legal here, as they are to an API server;
// the canonical form deals with them.
type scanner struct {
	tape *tape // nil where the text is at hand
	dec  *jsontext.Decoder
}

var scanning = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func newScanner(source io.Reader, limit int64) *scanner {
	t := &tape{source: source, limit: limit}
	return &scanner{tape: t, dec: jsontext.NewDecoder(t, scanning)}
}

// over begins again, with a text that is at hand and is read in place.
func (s *scanner) over(text []byte) *scanner {
	s.dec.Reset(bytes.NewBuffer(text), scanning)
	return s
}

// span is a stretch of the stream, in offsets.
type span struct{ start, end int64 }

// members calls f for each member of the object that comes next; f must consume the
// member's value, and the name is valid until it does. It is a notObjectError, and
// the value is consumed, if another kind of value comes next.
func (s *scanner) members(f func(name []byte) error) (span, error) {
	kind := s.dec.PeekKind()
	if kind != jsontext.KindBeginObject {
		if _, err := s.dec.ReadValue(); err != nil {
			return span{}, err
		}
		return span{}, &notObjectError{kind}
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return span{}, err
	}
	start := s.dec.InputOffset() - 1
	for s.dec.PeekKind() != jsontext.KindEndObject {
		raw, err := s.dec.ReadValue()
		if err != nil {
			return span{}, err
		}
		if err := f(memberName(raw)); err != nil {
			return span{}, err
		}
	}
	_, err := s.dec.ReadToken()
	return span{start, s.dec.InputOffset()}, err
}

// memberName is the name without quotes and escapes.
func memberName(raw jsontext.Value) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	// The decoder has accepted the string already, so that the only error left is
	// invalid UTF-8, which no name that matters here contains.
	name, _ := jsontext.AppendUnquote(nil, raw)
	return name
}

// skip reads over the next value.
func (s *scanner) skip() error {
	_, err := s.dec.ReadValue()
	return err
}

// item reads the object that comes next into o, without its text. A decodeError is
// the object's own fault: the object was consumed and the stream can go on. Any
// other error is the stream's.
func (s *scanner) item(o *Object) (span, error) {
	var wrong error
	member := func(name []byte) error {
		var err error
		switch string(name) {
		case "apiVersion":
			err = s.decode(&o.APIVersion)
		case "kind":
			err = s.decode(&o.Kind)
		case "metadata":
			var m metadata
			err = s.decode(&m)
			m.fill(&o.ObjectMeta)
		default:
			return s.skip()
		}
		if bad := (*decodeError)(nil); errors.As(err, &bad) {
			wrong = cmp.Or(wrong, error(bad))
			return nil
		}
		return err
	}
	where, err := s.members(member)
	if bad := (*notObjectError)(nil); errors.As(err, &bad) {
		return where, &decodeError{err}
	}
	return where, cmp.Or(err, wrong)
}

// decode decodes the value that comes next. After a decodeError the value was
// consumed all the same.
func (s *scanner) decode(into any) error {
	depth := s.dec.StackDepth()
	_, before := s.dec.StackIndex(depth)
	err := json.UnmarshalDecode(s.dec, into)
	if err == nil {
		return nil
	}
	if fault := s.finish(depth, before+1); fault != nil {
		return fault
	}
	return &decodeError{err}
}

// finish consumes tokens until the stack is at the given depth, with so many tokens
// read there. If what stopped a decoding was the stream itself, its error comes up again.
func (s *scanner) finish(depth int, length int64) error {
	for {
		at := s.dec.StackDepth()
		_, n := s.dec.StackIndex(at)
		if at < depth || at == depth && n >= length {
			return nil
		}
		if _, err := s.dec.ReadToken(); err != nil {
			return err
		}
	}
}

// isSyntax reports whether an error is about the text, as against its being cut off.
func isSyntax(err error) bool {
	var syntax *jsontext.SyntacticError
	return errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// decodeError is a value of a form that does not fit, in a stream that is sound.
type decodeError struct{ err error }

func (e *decodeError) Error() string { return e.err.Error() }
func (e *decodeError) Unwrap() error { return e.err }

// notObjectError says that something else stands where an object must.
type notObjectError struct{ kind jsontext.Kind }

func (e *notObjectError) Error() string {
	return fmt.Sprintf("a JSON %s stands where an object must", e.kind)
}
