package ask

import "fmt"

// A Place is the position at which an answer continues that counts backwards from the newest delta. As text it is the
// cursor of that answer.
type Place struct {
	Offset    int64 // of the next item, in the list of what was counted
	Low, Last int64 // the counted seqs, both included; none if Low is above Last
}

func (p Place) String() string { return fmt.Sprintf("%d-%d-%d", p.Offset, p.Low, p.Last) }

// PlaceOf reads a cursor. "" is the beginning of a count up to a seq. It refuses a cursor that no answer of a record with
// that head returned.
func PlaceOf(cursor string, last, head int64) (p Place, err error) {
	if cursor == "" {
		return Place{Low: last + 1, Last: last}, nil
	}
	_, err = fmt.Sscanf(cursor, "%d-%d-%d", &p.Offset, &p.Low, &p.Last)
	if err != nil || p.String() != cursor || p.Offset < 0 || p.Offset > 1<<40 || p.Low < 1 || p.Last > head || p.Low > p.Last+1 {
		return p, BadCursor(cursor)
	}
	return p, nil
}
