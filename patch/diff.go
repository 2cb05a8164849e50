package patch

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// Diff returns the RFC 6902 patch that turns one Doc into another, in the order of the text. It uses add, remove and
// replace, and move for array elements that have another place. The operations remove and replace have a member "old"
// with the old value. For equal Docs the patch is []. The patch is canonical itself. The error says which of the two is
// not a Doc.
func Diff(from, to Doc) ([]byte, error) {
	return AppendDiff(nil, from, to)
}

// AppendDiff appends the result of Diff to dst. After an error dst is unchanged.
func AppendDiff(dst []byte, from, to Doc) ([]byte, error) {
	if bytes.Equal(from, to) && len(from) > 0 {
		return append(dst, "[]"...), nil
	}
	d := differs.Get().(*differ)
	defer d.release()
	if err := d.from.parseDoc(from); err != nil {
		return dst, fmt.Errorf("patch: diff: old document: %w", err)
	}
	return d.diff(dst, to)
}

// diff appends the patch from the document that was read to another document.
func (d *differ) diff(dst []byte, to Doc) ([]byte, error) {
	if err := d.to.parseNext(to, &d.from); err != nil {
		return dst, fmt.Errorf("patch: diff: new document: %w", err)
	}
	d.reset()
	cost := d.value(0, 0, rootPath)
	return d.appendPatch(slices.Grow(dst, cost+2)), nil
}

// differs keeps the memory of differs between calls.
var differs = sync.Pool{New: func() any { return new(differ) }}

// A differ first plans a patch and then writes it, so that it can replace a plan by a cheaper one without cost. The
// time is proportional to the size of the two documents, with n·log(n) for long arrays.
type differ struct {
	from, to tape
	patch    tape // the patch, read again for the check
	edits    []edit
	segments []segment
	elements []int32 // nodes of the elements of the arrays being compared, innermost last
	aligner  aligner
	same     equalRun
}

type editKind uint8

const (
	editAdd editKind = iota
	editRemove
	editReplace
	editMove
)

// An edit is one operation of the patch.
type edit struct {
	kind     editKind
	path     int32 // index of the path's last segment
	from, to int32 // nodes of the old and the new value; for a move, from is the index of the old path's last segment
}

// A segment is the last token of a path; parent is the path before it.
type segment struct {
	parent int32
	index  int32 // in an array
	length int32 // of the text of the whole path, escapes included
	key    int32 // node of the key in one of the documents; 0 in an array
	added  bool  // the key is in the new document
}

// rootPath is the empty path.
const rootPath int32 = -1

// An equalRun remembers where two documents, compared at an offset, first differ. With it, values that are nested in
// each other are compared byte by byte once, and not once per level.
type equalRun struct {
	shift    int32
	from, to int32
}

func (d *differ) reset() {
	d.edits, d.segments, d.elements = d.edits[:0], d.segments[:0], d.elements[:0]
	d.same = equalRun{from: 1}
	d.aligner.reset(&d.from, &d.to)
}

func (d *differ) release() {
	for _, t := range [...]*tape{&d.from, &d.to, &d.patch} {
		t.forget()
	}
	if cap(d.from.nodes)+cap(d.to.nodes)+cap(d.patch.nodes)+cap(d.segments)+cap(d.elements)+d.aligner.size() <= 2*maxKept {
		differs.Put(d)
	}
}

// equal reports whether two values have the same text.
func (d *differ) equal(a, b int32) bool {
	x, y := &d.from.nodes[a], &d.to.nodes[b]
	if x.end-x.start != y.end-y.start {
		return false
	}
	shift := y.start - x.start
	if s := &d.same; shift == s.shift && x.start >= s.from && x.start <= s.to {
		return x.end <= s.to
	}
	before, after := d.from.span(a), d.to.span(b)
	if bytes.Equal(before, after) {
		return true
	}
	d.same = equalRun{shift, x.start, x.start + int32(mismatch(before, after))}
	return false
}

// mismatch returns the index of the first byte in which two texts of one length differ.
func mismatch(x, y []byte) int {
	i := 0
	for i+64 <= len(x) && bytes.Equal(x[i:i+64], y[i:i+64]) {
		i += 64
	}
	for i < len(x) && x[i] == y[i] {
		i++
	}
	return i
}

// value plans the edits that turn node a into node b, which are at path and differ. It returns the length of the
// operations, which is never more than that of replacing a with b.
func (d *differ) value(a, b, path int32) int {
	edits, segments := len(d.edits), len(d.segments)
	whole := edit{editReplace, path, a, b}
	var cost int
	switch kind := d.from.kind(a); {
	case kind != d.to.kind(b):
		return d.plan(whole)
	case kind == '{':
		cost = d.object(a, b, path)
	case kind == '[':
		cost = d.array(a, b, path)
	default:
		return d.plan(whole)
	}
	if cost <= d.cost(whole) {
		return cost
	}
	d.edits, d.segments = d.edits[:edits], d.segments[:segments]
	return d.plan(whole)
}

// object plans the edits between two objects by merging their members, which are sorted.
func (d *differ) object(a, b, path int32) (cost int) {
	i, iEnd := a+1, d.from.nodes[a].next
	j, jEnd := b+1, d.to.nodes[b].next
	for i < iEnd || j < jEnd {
		switch order := d.compareKeys(i, iEnd, j, jEnd); {
		case order < 0:
			cost += d.plan(edit{editRemove, d.member(path, i, false), i + 1, 0})
			i = d.from.nodes[i+1].next
		case order > 0:
			cost += d.plan(edit{editAdd, d.member(path, j, true), 0, j + 1})
			j = d.to.nodes[j+1].next
		default:
			if !d.equal(i+1, j+1) {
				cost += d.value(i+1, j+1, d.member(path, i, false))
			}
			i, j = d.from.nodes[i+1].next, d.to.nodes[j+1].next
		}
	}
	return cost
}

// compareKeys orders the next members of two objects; an object without more members comes last.
func (d *differ) compareKeys(i, iEnd, j, jEnd int32) int {
	switch {
	case i == iEnd:
		return 1
	case j == jEnd:
		return -1
	}
	return bytes.Compare(d.from.key(i), d.to.key(j))
}

// array plans the edits between two arrays. Paired elements are moved if necessary and edited in place; the others are
// removed and added. Each index counts the elements after the earlier operations, so it is an index of the new array.
func (d *differ) array(a, b, path int32) (cost int) {
	base := len(d.elements)
	first, olds, news := d.window(a, b)
	match := d.aligner.align(olds, news)
	crossed := slices.ContainsFunc(match, counterpart.crosses) // never in long arrays
	index := int32(first)
	for i, j := 0, 0; i < len(olds) || j < len(news); {
		switch {
		case i < len(olds) && match[i] == unmatched:
			cost += d.plan(edit{editRemove, d.element(path, index), olds[i], 0})
			i++
			continue
		case i < len(olds) && match[i].place() == j:
			if !d.equal(olds[i], news[j]) {
				cost += d.value(olds[i], news[j], d.element(path, index))
			}
			i++
		case i < len(olds) && match[i].crosses():
			cost += d.moveBack(olds[i:], match[i:], path, index)
			continue
		default:
			if crossed {
				if k := slices.Index(match[min(i, len(match)):], crossing(j)); k > 0 {
					cost += d.moveHere(olds[i:i+k+1], match[i:i+k+1], path, index)
					continue
				}
			}
			cost += d.plan(edit{editAdd, d.element(path, index), 0, news[j]})
		}
		j++
		index++
	}
	d.elements = d.elements[:base]
	d.aligner.release(match)
	return cost
}

// moveBack moves the first of the unedited elements behind all elements that precede it in the new array. After that it
// does not cross, because counterparts that do not cross ascend.
func (d *differ) moveBack(olds []int32, match []counterpart, path, index int32) (cost int) {
	place, behind := match[0].place(), 0
	for k, m := range match[1:] {
		if m >= 0 && m.place() > place {
			break
		}
		if m >= 0 {
			behind = k + 1
		}
	}
	match[0] = counterpart(place)
	if behind > 0 { // otherwise the elements before it are added, or moved here
		cost = d.plan(edit{editMove, d.element(path, index+int32(behind)), d.element(path, index), 0})
		rotate(olds[:behind+1], 1)
		rotate(match[:behind+1], 1)
	}
	return cost
}

// moveHere moves the last of the elements to the place of the first.
func (d *differ) moveHere(olds []int32, match []counterpart, path, index int32) (cost int) {
	last := len(olds) - 1
	match[last] = counterpart(match[last].place())
	cost = d.plan(edit{editMove, d.element(path, index), d.element(path, index+int32(last)), 0})
	rotate(olds, last)
	rotate(match, last)
	return cost
}

// rotate brings the element at index n to the front, and the elements before it to the end.
func rotate[T any](s []T, n int) {
	slices.Reverse(s[:n])
	slices.Reverse(s[n:])
	slices.Reverse(s)
}

// window returns the elements of two arrays without the equal ones at the beginning and at the end. first counts those
// at the beginning.
func (d *differ) window(a, b int32) (first int, olds, news []int32) {
	i, iEnd := a+1, d.from.nodes[a].next
	j, jEnd := b+1, d.to.nodes[b].next
	for i < iEnd && j < jEnd && d.equal(i, j) {
		i, j = d.from.nodes[i].next, d.to.nodes[j].next
		first++
	}
	base := len(d.elements)
	for ; i < iEnd; i = d.from.nodes[i].next {
		d.elements = append(d.elements, i)
	}
	split := len(d.elements)
	for ; j < jEnd; j = d.to.nodes[j].next {
		d.elements = append(d.elements, j)
	}
	olds, news = d.elements[base:split:split], d.elements[split:len(d.elements):len(d.elements)]
	for len(olds) > 0 && len(news) > 0 && bytes.Equal(d.from.span(olds[len(olds)-1]), d.to.span(news[len(news)-1])) {
		olds, news = olds[:len(olds)-1], news[:len(news)-1]
	}
	return first, olds, news
}

func (d *differ) member(parent, key int32, added bool) int32 {
	s := segment{parent: parent, key: key, added: added}
	text := d.keyText(&s)
	s.length = int32(len(text) + 1 + bytes.Count(text, []byte("~")) + bytes.Count(text, []byte("/")))
	return d.segment(s)
}

func (d *differ) keyText(s *segment) []byte {
	if s.added {
		return d.to.key(s.key)
	}
	return d.from.key(s.key)
}

func (d *differ) element(parent, index int32) int32 {
	length := int32(2)
	for i := index; i >= 10; i /= 10 {
		length++
	}
	return d.segment(segment{parent: parent, index: index, length: length})
}

func (d *differ) segment(s segment) int32 {
	s.length += d.pathLength(s.parent)
	d.segments = append(d.segments, s)
	return int32(len(d.segments) - 1)
}

func (d *differ) pathLength(path int32) int32 {
	if path == rootPath {
		return 0
	}
	return d.segments[path].length
}

func (d *differ) plan(e edit) int {
	d.edits = append(d.edits, e)
	return d.cost(e)
}
