package activity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
)

// A Block is a range of seqs whose counts can be used.
type Block struct {
	First, Last int64 // both included
	day         time.Time
}

// Blocks returns the blocks that hold seqs of a range, in order. They do not overlap. The first and the last block may
// reach beyond the range. Blocks skips days whose partitions are gone: their deltas are no longer on record.
func Blocks(ctx context.Context, rec *history.Record, first, last int64) ([]Block, error) {
	days, err := rec.Days().List(ctx, first, last)
	if err != nil {
		return nil, err
	}
	if days, err = present(ctx, rec, days); err != nil {
		return nil, err
	}
	return blocksOf(ctx, rec, days, first, last)
}

// present returns the days whose partitions are present.
func present(ctx context.Context, rec *history.Record, days []history.Day) (there []history.Day, err error) {
	for _, d := range days {
		var missing *history.MissingDayError
		switch err := rec.Days().Present(ctx, d); {
		case err == nil:
			there = append(there, d)
		case !errors.As(err, &missing):
			return nil, err
		}
	}
	return there, nil
}

// blocksOf returns the blocks of some days that have all widths, counted by this program's classifier.
func blocksOf(ctx context.Context, rec *history.Record, days []history.Day, first, last int64) (all []Block, err error) {
	dates := make([]time.Time, len(days))
	for i := range days {
		dates[i] = days[i].Day
	}
	rows, err := rec.Pool().Query(ctx, `
		SELECT first_seq, last_seq, day FROM kuberewind.record_activity
		WHERE cluster = $1 AND day = ANY ($2::date[]) AND last_seq >= $3 AND first_seq <= $4 AND classifier = $5
		GROUP BY day, first_seq, last_seq HAVING count(*) = $6 ORDER BY first_seq`, rec.Cluster().Number, dates, first, last, class.Version, rowsOfBlock)
	if err != nil {
		return nil, fmt.Errorf("find the blocks of counts: %w", err)
	}
	var b Block
	_, err = pgx.ForEachRow(rows, []any{&b.First, &b.Last, &b.day}, func() error {
		if len(all) == 0 || b.First > all[len(all)-1].Last {
			all = append(all, b)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the blocks of counts: %w", err)
	}
	return all, nil
}

// A Selection selects the counts to read. Nil and "" do not bound.
type Selection struct {
	Width      Width // Delta, Minute or Hour
	Streams    []int32
	Namespaces []string
	Manager    string // a proved manager
}

// A Count is the number of deltas of a class in a minute or an hour, or one delta.
type Count struct {
	At                time.Time // the beginning of the minute or hour, or the time of the delta
	Class             class.Class
	N                 int64
	FirstSeq, LastSeq int64 // lowest and highest seq
}

// ErrChanged says that a block is gone, or differs from what the caller read before.
var ErrChanged = errors.New("the counts have changed meanwhile")

// Read calls give with the counts of consecutive blocks. After an error, it may have called give for some of them. The
// error is ErrChanged if a block is gone.
func Read(ctx context.Context, rec *history.Record, blocks []Block, s Selection, give func(Count)) error {
	if len(blocks) == 0 {
		return nil
	}
	newest := blocks[len(blocks)-1]
	width := s.Width
	if s.Namespaces == nil && s.Manager == "" {
		width = cmp.Or(map[Width]Width{Minute: MinuteOfResource, Hour: HourOfResource}[width], width)
	}
	rows, err := rec.Pool().Query(ctx, `
		SELECT first_seq, last_seq, times, classes, counts, first_seqs, last_seqs, deltas,
			CASE WHEN $7 THEN streams ELSE '{}' END, CASE WHEN $8 THEN namespaces ELSE '{}' END, CASE WHEN $9 THEN managers ELSE '{}' END
		FROM kuberewind.record_activity
		WHERE cluster = $1 AND day BETWEEN $2 AND $3 AND first_seq BETWEEN $4 AND $5 AND width = $6 AND classifier = $10
		ORDER BY first_seq`,
		rec.Cluster().Number, blocks[0].day, newest.day, blocks[0].First, newest.First, string(width), s.Streams != nil, s.Namespaces != nil, s.Manager != "", class.Version)
	if err != nil {
		return fmt.Errorf("read the counts: %w", err)
	}
	defer rows.Close()
	next := 0
	for rows.Next() {
		var first, last int64
		var c columns
		if err := rows.Scan(&first, &last, &c.times, &c.classes, &c.counts, &c.firstSeqs, &c.lastSeqs, &c.deltas, &c.streams, &c.namespaces, &c.managers); err != nil {
			return fmt.Errorf("read the counts: %w", err)
		}
		if next == len(blocks) || first != blocks[next].First || last != blocks[next].Last || !s.fits(&c) {
			return ErrChanged
		}
		if s.Width == Delta {
			if err := s.giveEach(&c, blocks[next], give); err != nil {
				return ErrChanged
			}
		}
		next++
		s.give(&c, give)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the counts: %w", err)
	}
	if next < len(blocks) {
		return ErrChanged
	}
	return nil
}

// fits reports whether the columns have the expected lengths.
func (s *Selection) fits(c *columns) bool {
	n, counts := len(c.classes), len(c.classes)
	if s.Width == Delta {
		counts = 0
	}
	return len(c.times) == counts && len(c.counts) == counts && len(c.firstSeqs) == counts && len(c.lastSeqs) == counts &&
		(s.Streams == nil || len(c.streams) == n) && (s.Namespaces == nil || len(c.namespaces) == n) && (s.Manager == "" || len(c.managers) == n)
}

// selects reports whether the selection includes the i-th count of columns, or the deltas of the i-th kind.
func (s *Selection) selects(c *columns, i int) bool {
	return (s.Streams == nil || slices.Contains(s.Streams, c.streams[i])) && (s.Namespaces == nil || slices.Contains(s.Namespaces, c.namespaces[i])) &&
		(s.Manager == "" || c.managers[i] == s.Manager)
}

func (s *Selection) give(c *columns, give func(Count)) {
	for i, at := range c.times {
		if s.selects(c, i) {
			give(Count{At: at, Class: class.Class(c.classes[i]), N: int64(c.counts[i]), FirstSeq: c.firstSeqs[i], LastSeq: c.lastSeqs[i]})
		}
	}
}

// giveEach calls give with the deltas of a block one by one.
func (s *Selection) giveEach(c *columns, b Block, give func(Count)) error {
	selected := make([]bool, len(c.classes))
	for i := range selected {
		selected[i] = s.selects(c, i)
	}
	return decode(c.deltas, len(selected), b.Last-b.First+1, func(i int64, kind int, ms int64) {
		if seq := b.First + i; selected[kind] {
			give(Count{At: time.UnixMilli(ms), Class: class.Class(c.classes[kind]), N: 1, FirstSeq: seq, LastSeq: seq})
		}
	})
}
