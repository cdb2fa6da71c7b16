package servers

import "time"

// Report is what one look at the servers has found.
type Report struct {
	At       time.Time `json:"at"` // when the look began
	Servers  []Server  `json:"servers"`
	Ensemble Ensemble  `json:"ensemble"`
	Findings []Finding `json:"findings"`
	// Clients are the sessions that cons and dump name, by their ids.
	Clients map[int64]Client `json:"clients"`
	// Tells reports whether the servers say which clients live: all reachable ones allow cons, or the leader allows dump.
	Tells bool `json:"tells"`

	decided bool // the leader has listed all sessions
}

// Server is one server of the connect string.
type Server struct {
	Addr      string `json:"addr"`
	Error     string `json:"error"`     // why it does not serve
	Reachable bool   `json:"reachable"` // it answered as a ZooKeeper server does
	Serves    bool   `json:"serves"`    // it granted a session, which needs a quorum
	Mode      string `json:"mode"`      // leader, follower, observer, standalone; empty for unknown
	Version   string `json:"version"`   // empty for unknown
	// LatencyMS is how long one request took, as we measured it; -1 for unknown.
	LatencyMS   float64  `json:"latencyMs"`
	Connections int      `json:"connections"` // but for those of the look; -1 for unknown
	Nodes       int64    `json:"nodes"`       // -1 for unknown
	Zxid        string   `json:"zxid"`        // empty for unknown
	ZxidLag     int64    `json:"zxidLag"`     // behind the greatest one of its epoch; -1 for unknown
	Words       []string `json:"words"`       // which of srvr, cons, dump, conf it allows

	fix string // what to do about Error; empty for unknown
}

// Ensemble is what the servers are together.
type Ensemble struct {
	Quorum            bool `json:"quorum"` // a server granted a session
	Voters            int  `json:"voters"` // servers of the connect string that are no observers
	Serving           int  `json:"serving"`
	TimeoutMin        int  `json:"timeoutMinMs"` // of sessions, in ms; 0 for unknown
	TimeoutMax        int  `json:"timeoutMaxMs"`
	Containers        bool `json:"containers"` // these three as the oldest version says; false for unknown
	TTL               bool `json:"ttl"`
	PersistentWatches bool `json:"persistentWatches"`
}

// The severities of a Finding.
const (
	Problem = "problem"
	Note    = "note"
)

// Finding is a thing that is wrong, and its fix.
type Finding struct {
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Fix      string `json:"fix"`
	Server   string `json:"server"` // empty for a finding about several
}

// Client is what cons and dump say of one session.
type Client struct {
	Session     string `json:"session"`
	Connected   bool   `json:"connected"`
	Address     string `json:"address"` // of a connected one
	HeardMS     int64  `json:"heardMs"` // how long ago a server answered it; -1 for unknown
	TimeoutMS   int64  `json:"timeoutMs"`
	ExpiresInMS int64  `json:"expiresInMs"` // at most; -1 for unknown
	Exists      *bool  `json:"exists"`      // nil: the servers do not tell
}
