package mistyped

import (
	"cmp"
	"slices"
)

// Suggest returns the candidate that is most like the word, "" if none is like it.
func Suggest(word string, candidates []string) string {
	type near struct {
		word     string
		distance int
	}
	var found []near
	for _, candidate := range candidates {
		if distance, slip := Near(word, candidate); slip {
			found = append(found, near{candidate, distance})
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.MinFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.word, b.word)) }).word
}

// mostLetters is the maximum number of wrong letters in a slip.
const mostLetters = 2

// Near returns how many letters of word must be inserted, removed, changed, or swapped with the next letter, to get
// candidate. It also reports whether that is a slip: at most a third of the word, at least one, and at most two letters.
func Near(word, candidate string) (distance int, slip bool) {
	if distance = max(len(word)-len(candidate), len(candidate)-len(word)); distance > mostLetters {
		return distance, false // a lower bound of the distance; words can be long
	}
	rows := make([][]int, len(word)+1) // rows[i][j] compares the first i letters with the first j of the candidate
	for i := range rows {
		rows[i] = make([]int, len(candidate)+1)
		rows[i][0] = i
		for j := 1; j <= len(candidate); j++ {
			if i == 0 {
				rows[0][j] = j
				continue
			}
			changed := rows[i-1][j-1]
			if word[i-1] != candidate[j-1] {
				changed++
			}
			rows[i][j] = min(changed, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && word[i-1] == candidate[j-2] && word[i-2] == candidate[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	distance = rows[len(word)][len(candidate)]
	return distance, distance <= min(mostLetters, max(1, len(word)/3))
}
