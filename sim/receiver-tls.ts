// The certificate library uses reflect metadata, which must be loaded first.
import 'reflect-metadata';

import { webcrypto } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { DAY_MS } from '../src/domain/values/durations.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const CA_DAYS = 3650;
/** The maximum lifetime of leaf certificates that Apple and others accept. */
const LEAF_DAYS = 397;

type Keys = webcrypto.CryptoKeyPair;

/** A certificate authority of our own: only clients with `caPem` trust it. */
interface CertificateAuthority {
  readonly caPem: string;
  /** A server certificate for these host names and addresses. */
  readonly issue: (hosts: readonly string[], validity?: Validity) => Promise<ServerCertificate>;
}

interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** PEM texts as `node:https` takes them. */
interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A new authority, in memory. */
export async function createAuthority(): Promise<CertificateAuthority> {
  const keys = await generateKeys();
  return authority(await selfSignedCa(keys), keys.privateKey);
}

/**
 * The authority in `directory`, created on first use, so that a `ca.pem` in WEBHOOK_CA_FILE stays valid
 * over restarts. `ca-key.pem`, readable by its owner only, contains certificate and key together, so that they always match.
 */
export async function openAuthority(directory: string): Promise<CertificateAuthority> {
  const storePath = join(directory, 'ca-key.pem');
  let stored = await readStored(storePath);
  if (stored === null) {
    await mkdir(directory, { recursive: true });
    const keys = await generateKeys();
    const certificate = await selfSignedCa(keys);
    await writeAtomically(
      storePath,
      `${certificate.toString('pem')}\n${await privateKeyPem(keys.privateKey)}\n`,
      0o600,
    );
    stored = authority(certificate, keys.privateKey);
  }
  await writeAtomically(join(directory, 'ca.pem'), stored.caPem, 0o644);
  return stored;
}

async function readStored(storePath: string): Promise<CertificateAuthority | null> {
  try {
    const [certificateDer, keyDer] = x509.PemConverter.decode(await readFile(storePath, 'utf8'));
    if (certificateDer === undefined || keyDer === undefined) throw new Error('certificate or key is missing');
    const certificate = new x509.X509Certificate(certificateDer);
    const privateKey = await webcrypto.subtle.importKey('pkcs8', keyDer, ALGORITHM, true, ['sign']);
    const livesLongEnough = certificate.notAfter.getTime() > Date.now() + LEAF_DAYS * DAY_MS;
    return livesLongEnough ? authority(certificate, privateKey) : null;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new Error(`cannot use the certificate authority in ${storePath}; delete it to get a new one`, {
      cause: error,
    });
  }
}

async function writeAtomically(path: string, text: string, mode: number): Promise<void> {
  const temporaryPath = `${path}.${process.pid}.tmp`;
  await writeFile(temporaryPath, text, { mode });
  await rename(temporaryPath, path);
}

function generateKeys(): Promise<Keys> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

async function selfSignedCa(keys: Keys): Promise<x509.X509Certificate> {
  return x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=oddswire local receiver CA',
    ...validFor(CA_DAYS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
}

function authority(ca: x509.X509Certificate, signingKey: webcrypto.CryptoKey): CertificateAuthority {
  return {
    caPem: `${ca.toString('pem')}\n`,
    async issue(hosts, validity = validFor(LEAF_DAYS)) {
      const keys = await generateKeys();
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: serialNumber(),
        subject: 'CN=oddswire local receiver',
        issuer: ca.subject,
        ...validity,
        signingAlgorithm: ALGORITHM,
        signingKey,
        publicKey: keys.publicKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
          new x509.SubjectAlternativeNameExtension(
            hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })),
          ),
          await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
        ],
      });
      return { cert: certificate.toString('pem'), key: await privateKeyPem(keys.privateKey) };
    },
  };
}

/** Backdated by a day, so that a machine with a slightly slow clock accepts it. */
function validFor(days: number): Validity {
  return { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + days * DAY_MS) };
}

/** 127 random bits: positive, and unique even among authorities of the same name. */
function serialNumber(): string {
  const bytes = Buffer.from(webcrypto.getRandomValues(new Uint8Array(16)));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x01;
  return bytes.toString('hex');
}
