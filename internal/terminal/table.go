package terminal

import (
	"strings"
	"unicode/utf8"
)

// tableIndent is the indent of columns that do not fit next to the first.
const tableIndent = 4

// tableGap is the minimum number of blanks between two columns in kubectl's tables, and in ours.
const tableGap = 3

// FoldTables breaks tables that are wider than the terminal between their columns. An empty line separates tables. Columns
// that do not fit follow on the next line, also aligned. With width 0, it breaks nothing.
func FoldTables(text string, width int) string {
	if width <= 0 {
		return text
	}
	tables := strings.Split(text, "\n\n")
	for i, table := range tables {
		tables[i] = foldTable(table, width)
	}
	return strings.Join(tables, "\n\n")
}

func foldTable(text string, width int) string {
	lines := strings.Split(text, "\n")
	rows, widest := make([][]rune, len(lines)), 0
	for i, line := range lines {
		rows[i] = []rune(strings.TrimRight(line, " "))
		widest = max(widest, Columns(line))
	}
	if widest <= width {
		return text
	}
	parts := folds(columnsOf(rows), width)
	for i, row := range rows {
		lines[i] = foldRow(row, parts, width)
	}
	return strings.Join(lines, "\n")
}

// A column is the position of a column: its beginning in each row, and the end of its longest cell.
type column struct{ begin, end int }

// columnsOf finds the columns of a table: a column begins after a gap that all rows have.
func columnsOf(rows [][]rune) (columns []column) {
	var used []bool // whether a row has text there
	for _, row := range rows {
		for len(used) < len(row) {
			used = append(used, false)
		}
		for i, r := range row {
			used[i] = used[i] || r != ' '
		}
	}
	gap := tableGap
	for i, text := range used {
		switch {
		case !text:
			gap++
			continue
		case gap >= tableGap:
			columns = append(columns, column{begin: i})
		}
		gap = 0
		columns[len(columns)-1].end = i + 1
	}
	return columns
}

// folds returns the beginning and end of each line of a folded row.
func folds(columns []column, width int) (parts []column) {
	for _, c := range columns {
		room := width
		if len(parts) > 1 {
			room -= tableIndent
		}
		if n := len(parts); n > 0 && c.end-parts[n-1].begin <= room {
			parts[n-1].end = c.end
			continue
		}
		parts = append(parts, c)
	}
	return parts
}

func foldRow(row []rune, parts []column, width int) string {
	var lines []string
	for i, part := range parts {
		text := strings.TrimRight(string(row[min(part.begin, len(row)):min(part.end, len(row))]), " ")
		hanging := 2 * tableIndent
		if i > 0 {
			text = strings.Repeat(" ", tableIndent) + text
		}
		if i == 0 || utf8.RuneCountInString(text) > tableIndent {
			lines = append(lines, Wrap(text, width, hanging))
		}
	}
	return strings.Join(lines, "\n")
}
