package pgdial

// AskInSilenceOf is AskInSilence, sooner.
var AskInSilenceOf = askInSilence
