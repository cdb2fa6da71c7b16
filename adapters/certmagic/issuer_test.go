package zkcertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	zkcertmagic "github.com/go-menagerie/menagerie/adapters/certmagic"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// authority is a certificate authority, which takes a minute for each certificate.
type authority struct {
	key     *ecdsa.PrivateKey
	virtual bool
	mu      sync.Mutex
	issued  []string
}

func newAuthority(t *testing.T, virtual bool) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return &authority{key: key, virtual: virtual}
}

func (a *authority) IssuerKey() string { return "test" }

func (a *authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if a.virtual {
		time.Sleep(time.Minute)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.issued = append(a.issued, csr.DNSNames...)
	cert := &x509.Certificate{SerialNumber: big.NewInt(int64(len(a.issued))), DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, csr.PublicKey, a.key)
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// config is that of a process.
func config(t *testing.T, s *zksync.Session, a *authority) *certmagic.Config {
	var c *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{Logger: zap.NewNop(),
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return c, nil }})
	t.Cleanup(cache.Stop)
	c = certmagic.New(cache, certmagic.Config{Storage: zkcertmagic.New(s, "/tls"), Issuers: []certmagic.Issuer{a}, Logger: zap.NewNop(),
		OCSP: certmagic.OCSPConfig{DisableStapling: true}})
	return c
}

// The lock of certmagic and its storage together: the processes that had to wait find the certificate.
func TestAcceptance223OneProcessObtainsACertificateAndAllHaveIt(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		a := newAuthority(t, v.Virtual)
		begin := time.Now()
		var g errgroup.Group
		for range 3 {
			c := config(t, v.Session(), a)
			g.Go(func() error {
				if err := c.ObtainCertSync(t.Context(), "example.com"); err != nil {
					return err
				}
				cert, err := c.CacheManagedCertificate(t.Context(), "example.com")
				if err == nil && cert.Leaf.SerialNumber.Int64() != 1 {
					t.Error("another certificate: ", cert.Leaf.SerialNumber)
				}
				return err
			})
		}
		require.NoError(t, g.Wait())
		require.Equal(t, []string{"example.com"}, a.issued)
		if v.Virtual {
			require.Equal(t, time.Minute, time.Since(begin))
		}
	})
}

// The process that obtains the certificate is cut off. Another one goes on when the servers have ended its session.
func TestAcceptance223AnotherProcessObtainsTheCertificateOfADeadOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		a := newAuthority(t, true)
		s := v.Session()
		dead := zkcertmagic.New(s, "/tls")
		require.NoError(t, dead.Lock(t.Context(), "issue_cert_example.com")) // as certmagic does
		defer v.Server.Partition(s.ID())()
		begin := time.Now()
		require.NoError(t, config(t, v.Session(), a).ObtainCertSync(t.Context(), "example.com"))
		require.Equal(t, []string{"example.com"}, a.issued)
		require.Less(t, time.Since(begin), time.Minute+s.Timeout()+5*time.Second)
	})
}

func TestTheLocksOfAStorageOfCertificates(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, s := t.Context(), v.Session()
		a, b := zkcertmagic.New(s, "/tls"), zkcertmagic.New(v.Session(), "/tls")
		try := func(st *zkcertmagic.Storage, want bool) {
			t.Helper()
			got, err := st.TryLock(ctx, "x")
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		require.ErrorIs(t, a.Unlock(ctx, "x"), zksync.ErrMisuse)
		require.ErrorIs(t, a.RenewLockLease(ctx, "x", time.Hour), zksync.ErrMisuse)
		require.NoError(t, a.Lock(ctx, "x"))
		require.NoError(t, a.RenewLockLease(ctx, "x", time.Hour))
		try(a, false)
		try(b, false)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, b.Lock(short, "x"), context.DeadlineExceeded)
		unlocked := make(chan error)
		go func() { unlocked <- a.Unlock(ctx, "x") }()
		require.NoError(t, <-unlocked)
		try(b, true)
		require.NoError(t, b.Unlock(ctx, "x"))

		// A lock that is lost, and free, is locked again.
		lose := func() {
			v.Server.Expire(s.ID())
			time.Sleep(time.Second)
			v.Connected(s)
		}
		try(a, true)
		lose()
		require.NoError(t, a.RenewLockLease(ctx, "x", time.Hour))
		try(b, false)
		lose()
		try(b, true)
		err := a.RenewLockLease(ctx, "x", time.Hour)
		require.ErrorIs(t, err, zksync.ErrLost)
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.NoError(t, b.Unlock(ctx, "x"))

		// The Unlock of the holder that has lost it does not end the next hold in the same process.
		require.NoError(t, a.Lock(ctx, "x"))
		require.NoError(t, a.Unlock(ctx, "x"))
		try(b, false)
		require.NoError(t, a.Unlock(ctx, "x"))
		try(b, true)
		require.NoError(t, b.Unlock(ctx, "x"))

		for _, name := range []string{"", ".", "..", "a/b", "issue_cert_*.example.com", strings.Repeat("x", 100_000)} {
			require.NoError(t, a.Lock(ctx, name), name)
			require.NoError(t, a.Unlock(ctx, name))
		}
	})
}
