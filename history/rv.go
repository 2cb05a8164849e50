package history

// rvCounts is the SQL of !delta.Precedes(limit, rv), for the column rv and a parameter with the limit, "" for none. A version without a
// place in the order counts, so that it never hides a row.
const rvCounts = `($%[1]d::text = '' OR length(rv) < length($%[1]d::text) OR length(rv) = length($%[1]d::text) AND rv COLLATE "C" <= $%[1]d::text)`
