package interop

import (
	"os"
	"os/exec"
	"testing"
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
	peers(t)
	a := newArena(t)
	a.curator("lock", 60)
	a.kazoo("lock-name", 60)
	a.gozk(60)
	a.mutex(60)
	a.mutex(60)
	a.check()
}

// Stock kazoo calls its nodes by a name that Curator does not understand; we do.
func TestOurMutexAndStockKazooExcludeEachOther(t *testing.T) {
	peers(t)
	a := newArena(t)
	a.kazoo("lock", 60)
	a.kazoo("lock", 60)
	a.mutex(60)
	a.writer(60)
	a.check()
}

func TestReadersAndWritersOfCuratorAndOursExcludeEachOther(t *testing.T) {
	peers(t)
	a := newArena(t)
	a.curator("write", 40)
	a.curator("read", 60)
	a.writer(40)
	a.reader(60)
	a.reader(60)
	a.downgrader(30)
	a.check()
}
