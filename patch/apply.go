package patch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// maxCopied bounds what the copy operations of one patch may add, in bytes: each can double a document.
const maxCopied = 16 << 20

var (
	errTooDeep    = fmt.Errorf("the result is nested deeper than %d levels", maxDepth)
	errCopied     = fmt.Errorf("the patch copies more than %d bytes", maxCopied)
	errTestFailed = errors.New("the value differs from the value of the test")
	errRemoveRoot = errors.New("the whole document cannot be removed")
	errIntoItself = errors.New("a value cannot be moved into itself")
)

// Apply returns doc with a patch applied. It accepts any patch of RFC 6902, in any spelling: the text may have been
// through jsonb. It ignores members that the RFC does not name, such as "old". It applies all operations or none. The
// error names the operation that failed, and wraps ErrNotFound if its path does not exist. Apply changes neither doc
// nor patch; for a patch without operations it returns doc itself.
func Apply(doc Doc, patch []byte) (Doc, error) {
	e := editor{doc: tapes.Get().(*tape), patch: tapes.Get().(*tape)}
	defer e.doc.release()
	defer e.patch.release()
	if err := e.doc.parseDoc(doc); err != nil {
		return nil, fmt.Errorf("patch: apply: document: %w", err)
	}
	if err := e.parsePatch(patch); err != nil {
		return nil, fmt.Errorf("patch: apply: patch: %w", err)
	}
	if e.patch.nodes[0].next == 1 {
		return doc, nil
	}
	e.root = &value{src: e.doc}
	e.depth = e.doc.deepest
	if err := e.run(); err != nil {
		return nil, err
	}
	return e.result(len(doc) + len(patch))
}

// An editor holds a document while it is edited: a tree of the containers that operations went through. The rest stays
// as spans of text.
type editor struct {
	doc, patch *tape
	root       *value
	depth      int // the nesting of root is at most this
	copied     int
}

// parsePatch reads the patch. If the patch is not canonical, parsePatch brings it into canonical form first.
func (e *editor) parsePatch(text []byte) error {
	if err := e.patch.parse(text, maxDepth+wrapDepth); err != nil {
		return err
	}
	if !e.patch.canonical() {
		if err := e.patch.parse(e.patch.appendNode(nil, 0), maxDepth+wrapDepth); err != nil {
			return err
		}
	}
	if e.patch.kind(0) != '[' {
		return errors.New("a patch must be an array of operations")
	}
	return nil
}

func (e *editor) run() error {
	number := 0
	for i := int32(1); i < e.patch.nodes[0].next; i = e.patch.nodes[i].next {
		op, err := readOperation(e.patch, i)
		if err == nil {
			err = e.apply(&op)
		}
		if err != nil {
			return fmt.Errorf("patch: apply: operation %d%s: %w", number, op.label(), err)
		}
		number++
	}
	return nil
}

func (e *editor) apply(op *operation) error {
	switch op.name {
	case "add":
		return e.add(op.path, e.fresh(op.value))
	case "remove":
		_, err := e.remove(op.path)
		return err
	case "replace":
		return e.replace(op.path, e.fresh(op.value))
	case "move":
		return e.move(op.from, op.path)
	case "copy":
		return e.copy(op.from, op.path)
	default:
		return e.test(op.path, op.value)
	}
}

// fresh returns a value of the patch.
func (e *editor) fresh(i int32) *value {
	e.depth += e.patch.deepest
	v := &e.patch.parts.values.take(1)[0]
	v.src, v.node = e.patch, i
	return v
}

// find returns the value at a path.
func (e *editor) find(path []token) (*value, error) {
	v := e.root
	for n, t := range path {
		at, ok, err := v.locate(t)
		if err == nil && !ok {
			err = fmt.Errorf("%s is missing: %w", pathText(path[:n+1]), ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		v = v.members[at].value
	}
	return v, nil
}

func (e *editor) add(path []token, v *value) error {
	if len(path) == 0 {
		e.root = v
		return nil
	}
	parent, err := e.find(path[:len(path)-1])
	if err != nil {
		return err
	}
	last := path[len(path)-1]
	if parent.kind() == '[' && string(last) == "-" {
		parent.open()
		parent.members = append(parent.members, member{value: v})
		return nil
	}
	at, found, err := parent.locate(last)
	switch {
	case err != nil:
		return err
	case parent.kind() == '[' && at > len(parent.members):
		return fmt.Errorf("index %s of an array of %d: %w", last, len(parent.members), ErrNotFound)
	case parent.kind() == '[':
		parent.members = slices.Insert(parent.members, at, member{value: v})
	case found:
		parent.members[at].value = v
	default:
		parent.members = slices.Insert(parent.members, at, member{last, v})
	}
	return nil
}

// slot returns the container that holds the value at a path, which is not empty, and the value's place there.
func (e *editor) slot(path []token) (parent *value, at int, err error) {
	if parent, err = e.find(path[:len(path)-1]); err != nil {
		return nil, 0, err
	}
	at, ok, err := parent.locate(path[len(path)-1])
	if err == nil && !ok {
		err = fmt.Errorf("%s is missing: %w", pathText(path), ErrNotFound)
	}
	return parent, at, err
}

func (e *editor) remove(path []token) (*value, error) {
	if len(path) == 0 {
		return nil, errRemoveRoot
	}
	parent, at, err := e.slot(path)
	if err != nil {
		return nil, err
	}
	v := parent.members[at].value
	parent.cut(at)
	return v, nil
}

func (e *editor) replace(path []token, v *value) error {
	if len(path) == 0 {
		e.root = v
		return nil
	}
	parent, at, err := e.slot(path)
	if err != nil {
		return err
	}
	parent.members[at].value = v
	return nil
}

func (e *editor) move(from, path []token) error {
	if slices.EqualFunc(from, path, token.equal) {
		_, err := e.find(from)
		return err
	}
	if len(from) < len(path) && slices.EqualFunc(from, path[:len(from)], token.equal) {
		return errIntoItself
	}
	v, err := e.remove(from)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if siblings := len(from) == len(path) && slices.EqualFunc(from[:len(from)-1], path[:len(path)-1], token.equal); !siblings {
		e.depth = min(2*e.depth, maxText)
	}
	return e.add(path, v)
}

func (e *editor) copy(from, path []token) error {
	v, err := e.find(from)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	text, err := v.append(nil, 0)
	if err != nil {
		return err
	}
	if e.copied += len(text); e.copied > maxCopied {
		return errCopied
	}
	src := new(tape)
	if err := src.parse(text, maxDepth); err != nil {
		return err
	}
	e.depth += src.deepest
	return e.add(path, &value{src: src})
}

func (e *editor) test(path []token, want int32) error {
	v, err := e.find(path)
	if err != nil {
		return err
	}
	have, err := v.text()
	if err == nil && !bytes.Equal(have, e.patch.span(want)) {
		err = errTestFailed
	}
	return err
}

// result writes the edited document.
func (e *editor) result(size int) (Doc, error) {
	out, err := e.root.append(make([]byte, 0, size), 0)
	if err != nil {
		return nil, fmt.Errorf("patch: apply: %w", err)
	}
	if e.depth > maxDepth || len(out) > maxText {
		if err := e.doc.parse(out, maxDepth); err != nil {
			return nil, fmt.Errorf("patch: apply: result: %w", err)
		}
	}
	return out, nil
}
