package history

import "k8s.io/apimachinery/pkg/util/resourceversion"

func wellFormed(rv string) bool {
	_, err := resourceversion.CompareResourceVersion(rv, "1")
	return err == nil
}

// notAfter reports whether a resource version is not after another. One that is no number, as some aggregated servers
// give, is before every number, so that it never hides a row.
func notAfter(rv, limit string) bool {
	order, err := resourceversion.CompareResourceVersion(rv, limit)
	return err != nil || order <= 0
}

// laterRV gives the later of two resource versions of one stream.
func laterRV(a, b string) string {
	if a == "" || (b != "" && notAfter(a, b)) {
		return b
	}
	return a
}

// rvCounts is the SQL of notAfter for the column rv and a parameter, which is "" if it does not bound.
const rvCounts = `($%[1]d::text = '' OR length(rv) < length($%[1]d::text) OR length(rv) = length($%[1]d::text) AND rv COLLATE "C" <= $%[1]d::text)`
