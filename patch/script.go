package patch

// The pieces of an operation's text, in the canonical order of its members.
const (
	textFrom  = `{"from":"`
	textOld   = `{"old":`
	textOp    = `"op":"`
	textPath  = `","path":"`
	textValue = `","value":`
)

var opNames = [...]string{editAdd: "add", editRemove: "remove", editReplace: "replace", editMove: "move"}

// cost returns the length of an operation's text, with the comma before the next operation.
func (d *differ) cost(e edit) int {
	n := len(textOp) + len(opNames[e.kind]) + len(textPath) + int(d.pathLength(e.path)) + len(",{}")
	switch e.kind {
	case editAdd:
		return n + len(textValue) + len(d.to.span(e.to))
	case editRemove:
		return n + len(textOld) + len(d.from.span(e.from)) + len(`"`)
	case editReplace:
		return n + len(textOld) + len(d.from.span(e.from)) + len(textValue) + len(d.to.span(e.to))
	default: // editMove
		return n + len(textFrom) + int(d.pathLength(e.from)) + len(`""`)
	}
}

// appendPatch writes the planned edits.
func (d *differ) appendPatch(dst []byte) []byte {
	dst = append(dst, '[')
	for i, e := range d.edits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.appendEdit(dst, e)
	}
	return append(dst, ']')
}

func (d *differ) appendEdit(dst []byte, e edit) []byte {
	switch e.kind {
	case editAdd:
		dst = append(dst, '{')
	case editMove:
		dst = append(d.appendPath(append(dst, textFrom...), e.from), '"', ',')
	default:
		dst = append(append(append(dst, textOld...), d.from.span(e.from)...), ',')
	}
	dst = append(append(append(dst, textOp...), opNames[e.kind]...), textPath...)
	dst = d.appendPath(dst, e.path)
	if e.kind == editRemove || e.kind == editMove {
		return append(dst, '"', '}')
	}
	return append(append(append(dst, textValue...), d.to.span(e.to)...), '}')
}

// appendPath writes a path from its end to its beginning, because segments know only their parents. It can use the text
// of a key unchanged: the path is a JSON string, too.
func (d *differ) appendPath(dst []byte, path int32) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, d.pathLength(path))...)
	for end := len(dst); path != rootPath; path = d.segments[path].parent {
		s := &d.segments[path]
		if s.key == 0 {
			end = fillIndex(dst[start:end], s.index) + start
		} else {
			end = fillKey(dst[start:end], d.keyText(s)) + start
		}
		end--
		dst[end] = '/'
	}
	return dst
}

// fillIndex writes an index at the end of room, and returns the position at which it begins.
func fillIndex(room []byte, index int32) int {
	for i := len(room) - 1; ; i-- {
		room[i] = byte('0' + index%10)
		if index /= 10; index == 0 {
			return i
		}
	}
}

// fillKey writes a key, escaped as a reference token, at the end of room, and returns the position at which it begins.
func fillKey(room, key []byte) int {
	i := len(room)
	for k := len(key) - 1; k >= 0; k-- {
		c := key[k]
		if c == '~' || c == '/' {
			i--
			if room[i] = '0'; c == '/' {
				room[i] = '1'
			}
			c = '~'
		}
		i--
		room[i] = c
	}
	return i
}
