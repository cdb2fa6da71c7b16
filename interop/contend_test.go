package interop

import (
	"os"
	"os/exec"
	"testing"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zktest"
)

// peers leaves a test out where the other libraries are not installed.
func peers(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/share/java/curator-recipes.jar"); err != nil {
		t.Skip("Curator is not installed; as root: apt-get install libcurator-recipes-java")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("there is no Java compiler; as root: apt-get install default-jdk-headless")
	}
	if err := exec.Command("/usr/bin/python3", "-c", "import kazoo").Run(); err != nil {
		t.Skip("kazoo is not installed; as root: apt-get install python3-kazoo")
	}
}

func TestMutexesOfFourLibrariesExcludeEachOther(t *testing.T) {
	t.Parallel()
	peers(t)
	contend := func(t *testing.T, servers string) {
		a := newArena(t, servers)
		a.curator("lock", 60)
		a.kazoo("lock-name", 60)
		a.gozk(60)
		a.mutex(60)
		a.mutex(60)
		a.check()
	}
	t.Run("ZooKeeper", func(t *testing.T) {
		t.Parallel()
		contend(t, ensemble.ForTest(t, 1).Connect())
	})
	t.Run("zktest", func(t *testing.T) {
		t.Parallel()
		contend(t, zktest.Run(t).Addr())
	})
}

// Stock kazoo calls its nodes by a name that Curator does not understand; we do.
func TestOurMutexAndStockKazooExcludeEachOther(t *testing.T) {
	t.Parallel()
	peers(t)
	a := newArena(t, ensemble.ForTest(t, 1).Connect())
	a.kazoo("lock", 60)
	a.kazoo("lock", 60)
	a.mutex(60)
	a.writer(60)
	a.check()
}

func TestReadersAndWritersOfCuratorAndOursExcludeEachOther(t *testing.T) {
	t.Parallel()
	peers(t)
	a := newArena(t, ensemble.ForTest(t, 1).Connect())
	a.curator("write", 40)
	a.curator("read", 60)
	a.writer(40)
	a.reader(60)
	a.reader(60)
	a.downgrader(30)
	a.check()
}
