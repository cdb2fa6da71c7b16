// Package zkelection elects one leader among many processes. The candidates queue as for a zksync.Mutex on
// the same path. The first leads until it resigns, dies or is cut off; its lease ends before the next one can
// lead.
package zkelection
