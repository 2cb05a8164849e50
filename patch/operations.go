package patch

import "iter"

// An Operation is one step of a patch.
type Operation struct {
	Op    string   // add, remove, replace or move
	Path  []string // the reference tokens of its pointer, unescaped; nil is the whole document
	From  []string // for move, the path of the old place
	Value Doc      // for add and replace
	Old   Doc      // for remove and replace: the old value; nil if the patch does not have it
}

// Operations iterates over the steps of a patch, in their order. The patch must be canonical, as Diff and history
// return it. Operations skips an element that is no operation. Values share the memory of patch.
func Operations(patch []byte) iter.Seq[Operation] {
	return func(yield func(Operation) bool) {
		for _, step := range Members(Doc(patch)) {
			if op, ok := operationOf(step); ok && !yield(op) {
				return
			}
		}
	}
}

func operationOf(step Doc) (op Operation, ok bool) {
	ok = true
	for key, value := range Members(step) {
		var err error
		switch text, _ := Unquote(value); string(key) {
		case "op":
			op.Op = string(text)
		case "path":
			op.Path, err = splitPointer(string(text))
		case "from":
			op.From, err = splitPointer(string(text))
		case "value":
			op.Value = value
		case "old":
			op.Old = value
		}
		ok = ok && err == nil
	}
	return op, ok && op.Op != ""
}
