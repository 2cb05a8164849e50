package mistyped

import (
	"cmp"
	"slices"
)

// Suggest gives the candidate that was meant. It gives "" if none is like the word.
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

// mostLetters is how many letters a slip gets wrong at most.
const mostLetters = 2

// Near counts the letters that must be put in, taken out, changed, or swapped with the next. It says whether that is a slip. A slip is at
// most a third of the word, and at most two letters.
func Near(word, candidate string) (distance int, slip bool) {
	if distance = max(len(word)-len(candidate), len(candidate)-len(word)); distance > mostLetters {
		return distance, false // at least so many, and words can be long
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
