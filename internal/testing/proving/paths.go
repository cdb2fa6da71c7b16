package proving

// Where the recipes of a test are, unless it needs several of a kind.
const (
	LockPath     = "/locks/a"
	CondPath     = "/conds/a"
	SemPath      = "/sem"
	SemQueue     = SemPath + "/queue" // where those who want permits wait
	ElectionPath = "/election"
	OncePath     = "/once/migration"
	BarrierPath  = "/barriers/a"
	LatchPath    = "/latches/a"
	PhaserPath   = "/phasers/a"
	GroupPath    = "/groups/a"
)
