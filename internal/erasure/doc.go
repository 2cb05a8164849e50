// Package erasure removes one value from the whole record of a cluster: from keyframes, patches and their old values, exact texts, and
// recorded discovery. It drops checkpoints that hold the value, and the counts of its days. It writes "[erased N]" in place of the value;
// N is the number of the erasure.
//
// The package does not patch texts in place. It folds each life in which the value occurs from its first row on record, and compares each
// version with its digest (I6). Then it encodes the rows again from the versions without the value. So every version folds afterwards,
// keyframes agree with their patches, and the new digests match the readable text. If a life does not fold, the package refuses the whole
// erasure and changes nothing.
//
// An erasure is one transaction, in which no recorder can commit. It ends with a batch that lists the changes (see sink/postgres,
// Erasing), so that verify accepts exactly those. Only the owner of the tables may erase, because no other role can change a delta (I8).
package erasure
