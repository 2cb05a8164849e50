package patch

// Quote returns text as a JSON string.
func Quote(text []byte) Doc {
	dst := append(make([]byte, 0, len(text)+2), '"')
	for i := 0; i < len(text); {
		plain := plainEnd(text, i)
		dst = append(dst, text[i:plain]...)
		if plain < len(text) {
			dst = appendChar(dst, rune(text[plain]))
			plain++
		}
		i = plain
	}
	return append(dst, '"')
}

// Unquote returns the text of a JSON string, and false for any other value. A lone surrogate, which has no UTF-8 form,
// becomes three bytes that are not valid UTF-8.
func Unquote(doc Doc) (text []byte, ok bool) {
	if len(doc) < 2 || doc[0] != '"' {
		return nil, false
	}
	return appendDecoded(make([]byte, 0, len(doc)), doc[1:len(doc)-1]), true
}
