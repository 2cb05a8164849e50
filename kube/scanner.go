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

// scanner reads objects from a JSON stream in one pass. It decodes the needed fields while it reads, and copies the object's
// text from the recordingReader.
//
// It accepts duplicate names and invalid UTF-8, as an API server does. The canonical form handles them.
type scanner struct {
	input *recordingReader // nil if the scanner reads a text in memory
	dec   *jsontext.Decoder
}

var scanning = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func newScanner(source io.Reader, limit int64) *scanner {
	t := &recordingReader{source: source, limit: limit}
	return &scanner{input: t, dec: jsontext.NewDecoder(t, scanning)}
}

// over resets the scanner to a text in memory, which it reads in place.
func (s *scanner) over(text []byte) *scanner {
	s.dec.Reset(bytes.NewBuffer(text), scanning)
	return s
}

// span is a section of the stream, in offsets.
type span struct{ start, end int64 }

// members calls f for each member of the next object. f must consume the member's value; name is valid until then. If the
// next value is not an object, members consumes it and returns a notObjectError.
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

// memberName returns the name without quotes and escapes.
func memberName(raw jsontext.Value) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	// The decoder has already accepted the string. The only remaining error is invalid UTF-8, which none of the names that
	// this package reads contains.
	name, _ := jsontext.AppendUnquote(nil, raw)
	return name
}

// skip consumes the next value.
func (s *scanner) skip() error {
	_, err := s.dec.ReadValue()
	return err
}

// item reads the next object into o, without its text. A decodeError concerns only that object: the object was consumed and
// the stream can continue. Any other error concerns the stream.
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

// decode decodes the next value. It consumes the value even if it returns a decodeError.
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

// finish consumes tokens until the stack has the given depth and number of tokens. If the stream itself caused the decoding
// error, finish returns the stream's error again.
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

// isSyntax reports whether an error concerns the text, and not its early end.
func isSyntax(err error) bool {
	var syntax *jsontext.SyntacticError
	return errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// decodeError is returned for a value of the wrong form in an intact stream.
type decodeError struct{ err error }

func (e *decodeError) Error() string { return e.err.Error() }
func (e *decodeError) Unwrap() error { return e.err }

// notObjectError is returned if the next value is not an object.
type notObjectError struct{ kind jsontext.Kind }

func (e *notObjectError) Error() string {
	return fmt.Sprintf("expected a JSON object, found %s", e.kind)
}
