package pgdial

// AskInSilenceOf is AskInSilence with another silence.
var AskInSilenceOf = askInSilence
