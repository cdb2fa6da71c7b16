package zksync_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The certificate of the servers is replaced, and the file of the authorities with it. The session goes on.
func ExampleWithTLSFiles() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ca := filepath.Join(dir, "ca.pem")

	var served atomic.Pointer[tls.Certificate]
	served.Store(replaceCertificate(ca))
	srv := zktest.Start(zktest.WithTLS(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return served.Load(), nil },
	}))
	defer srv.Close()

	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr(), zksync.WithTLSFiles(ca, "", "")) // and the own certificate and key, if servers want them
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	lease, err := zksync.NewMutex(s, "/locks/a").LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	served.Store(replaceCertificate(ca))
	srv.Disconnect(s.ID())
	holders, err := zksync.Contenders(ctx, s, "/locks/a")
	fmt.Println(len(holders), err, lease.Valid())
	// Output: 1 <nil> true
}

// replaceCertificate makes a certificate for this machine, and writes it to a file.
func replaceCertificate(file string) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		panic(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
