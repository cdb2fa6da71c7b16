package ensemble_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

// withoutJava takes Java away from this process.
func withoutJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
}

func TestWithoutJavaAndZooKeeperTheErrorNamesTheCommandThatInstallsThem(t *testing.T) {
	withoutJava(t)
	t.Setenv("MENAGERIE_ZOOKEEPER_LIB", t.TempDir())
	_, err := ensemble.Start(t.Context(), ensemble.Config{})
	require.ErrorIs(t, err, ensemble.ErrNotInstalled)
	require.ErrorContains(t, err, "no java in PATH or JAVA_HOME")
	require.ErrorContains(t, err, "no zookeeper jar in")
	require.ErrorContains(t, err, "apt-get install -y --no-install-recommends default-jdk-headless libzookeeper-java ")
	require.NotContains(t, err.Error(), "\n")
}

func TestOnlyWhatIsMissingIsToBeInstalled(t *testing.T) {
	ensemble.Require(t)
	withoutJava(t)
	_, err := ensemble.Start(t.Context(), ensemble.Config{})
	require.ErrorIs(t, err, ensemble.ErrNotInstalled)
	require.ErrorContains(t, err, "--no-install-recommends default-jdk-headless ")
	require.NotContains(t, err.Error(), "libzookeeper-java")
}

func TestAMachineThatIsReadyIsLeftAsItIs(t *testing.T) {
	ensemble.Require(t)
	var log strings.Builder
	require.NoError(t, ensemble.Install(t.Context(), &log))
	require.Empty(t, log.String())
}

func TestWhereThereIsNoAptTheErrorSaysHowToInstall(t *testing.T) {
	withoutJava(t)
	err := ensemble.Install(t.Context(), io.Discard)
	require.ErrorIs(t, err, ensemble.ErrNotInstalled)
	require.ErrorContains(t, err, "default-jdk-headless")
	require.Regexp(t, "no apt-get$|not root$", err.Error())
}

func TestServersCanBeStartedAndPatchedFromTheLibFolderOfARelease(t *testing.T) {
	ensemble.Require(t)
	lib := t.TempDir()
	for _, name := range []string{"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-buffer", "netty-codec",
		"netty-common", "netty-handler", "netty-resolver", "netty-transport", "netty-transport-native-epoll",
		"netty-transport-native-unix-common", "metrics-core", "snappy-java", "commons-cli", "jackson-databind"} {
		data, err := os.ReadFile(filepath.Join("/usr/share/java", name+".jar"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(lib, name+"-3.8.jar"), data, 0o644))
	}
	t.Setenv("MENAGERIE_ZOOKEEPER_LIB", lib)
	e := ensemble.ForTest(t, 1)
	create(t, connect(t, e.Connect()), "/p")
	require.NoError(t, e.SetSequence(t.Context(), "/p", 5))
	require.Equal(t, []string{"0000000005"}, quiet(t, connect(t, e.Connect()), "/p/n-"))
}
