package ask

import "fmt"

// A Place is where an answer goes on that was counted backwards from the newest delta. As text it is the cursor of that answer.
type Place struct {
	Offset    int64 // of what is given next, in the list of what was counted
	Low, Last int64 // the seqs that were counted, both included; none if Low is above Last
}

func (p Place) String() string { return fmt.Sprintf("%d-%d-%d", p.Offset, p.Low, p.Last) }

// PlaceOf reads a cursor. "" is the begin of a count up to a seq. It refuses one that no answer of a record with that head gave.
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
