package wire

import "slices"

// Release is a release of ZooKeeper that the server behaves as. Whatever differs between releases, as far as a client can see it, is
// asked of it. docs/zktest/server.md has the source of each difference.
type Release struct {
	series  string // what a test names it by
	minor   int    // of 3.x
	Version string // what the server says it is
}

// String returns the name of the series.
func (r Release) String() string { return r.series }

// releases are those that can be chosen, the oldest first: the last of each series, but for 3.8, whose 3.8.0 is what the server
// is compared with (zktest/internal/conformance).
var releases = []Release{{"3.4", 4, "3.4.14"}, {"3.5", 5, "3.5.10"}, {"3.6", 6, "3.6.4"}, {"3.8", 8, "3.8.0"}, {"3.9", 9, "3.9.5"}}

// DefaultRelease is the series of a server that was not asked to be another.
const DefaultRelease = "3.8"

// ReleaseOf returns the release that stands for a series, such as "3.5". It reports false for a series that is not reproduced.
func ReleaseOf(series string) (Release, bool) {
	at := slices.IndexFunc(releases, func(r Release) bool { return r.series == series })
	if at < 0 {
		return Release{}, false
	}
	return releases[at], true
}

// Series returns the series that can be chosen, the oldest first.
func Series() []string {
	names := make([]string, 0, len(releases))
	for _, r := range releases {
		names = append(names, r.series)
	}
	return names
}

// since has the operations that came after 3.4, and the release in which they came.
var since = map[Op]int{
	OpCreate2: 5, OpReconfig: 5, OpCheckWatches: 5, OpRemoveWatches: 5, OpCreateContainer: 5, OpDeleteContainer: 5, OpCreateTTL: 5,
	OpMultiRead: 6, OpGetEphemerals: 6, OpGetAllChildrenNumber: 6, OpSetWatches2: 6, OpAddWatch: 6,
	OpWhoAmI: 7,
}

// Knows reports whether a request with this operation is served. Another one is answered "unimplemented", and the connection is closed.
func (r Release) Knows(op Op) bool {
	if op == OpCheck && r.minor >= 9 {
		return false // since 3.9.3 and 3.8.5 it is for multis only
	}
	return op.Known() && since[op] <= r.minor
}

// part reports whether a multi may have such a part. If it has another the whole is malformed.
func (r Release) part(op Op) bool { return since[op] <= r.minor }

// flags are the greatest that a create may have. Containers came in 3.5.
func (r Release) flags() int32 {
	if r.minor < 5 {
		return FlagEphemeral | FlagSequential
	}
	return FlagTTLSequential
}

// HasTTLs reports whether the release can have nodes with a time to live.
func (r Release) HasTTLs() bool { return r.Knows(OpCreateTTL) }

// DropsUnused reports whether the release can remove containers that never had a child. It is off by default; from 3.10 on the
// default is 5 minutes.
func (r Release) DropsUnused() bool { return r.minor >= 6 }

// EventZxid is the zxid in the header of an event of the transaction zxid. Only 3.9 tells it.
func (r Release) EventZxid(zxid int64) int64 {
	if r.minor < 9 {
		return NoZxid
	}
	return zxid
}

// NoZxid is the zxid in the header of an event that belongs to no transaction.
const NoZxid = -1

// TellsReadersOnly reports whether an event goes only to those who may read the node.
func (r Release) TellsReadersOnly() bool { return r.minor >= 8 }

// ChecksOwnWatches reports whether checkWatches asks for the client's own watches. From 3.6 to 3.8 those of any client will do.
func (r Release) ChecksOwnWatches() bool { return r.minor < 6 || r.minor >= 9 }

// SeveralModes reports whether watches of one client at one path stand side by side if they are of different kinds. Before 3.9 the
// newest replaces the others.
func (r Release) SeveralModes() bool { return r.minor >= 9 }
