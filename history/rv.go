package history

// rvCounts is the SQL of !delta.Precedes(limit, rv) for the column rv. Its parameter is the limit, "" for none. A resource
// version that has no place in the order counts, so that it does not hide a row.
const rvCounts = `($%[1]d::text = '' OR length(rv) < length($%[1]d::text) OR length(rv) = length($%[1]d::text) AND rv COLLATE "C" <= $%[1]d::text)`
