// Creates the certificates of a workspace's authority, and of the hosts whose connections the broker ends.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'

/** PEM. */
export type CertificateWithKey = { certificate: string; key: string }

const HOUR_MS = 3_600_000
/** The clock of a box may be behind. */
const BACKDATED_MS = HOUR_MS
const LEAF_MS = 48 * HOUR_MS
const AUTHORITY_MS = 3652 * 24 * HOUR_MS
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'
const COMMON_NAME = '2.5.4.3'
const SERIAL_BYTES = 16
/** The length of a SHA-1, which key identifiers had before (RFC 7093). */
const KEY_IDENTIFIER_BYTES = 20

/** @param name the common name, at most 64 characters */
export function createAuthority(name: string, now: number): CertificateWithKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = createName(name)
  const certificate = signCertificate({
    subject,
    issuer: subject,
    notBefore: now - BACKDATED_MS,
    notAfter: now + AUTHORITY_MS,
    publicKey,
    issuerKey: privateKey,
    extensions: [
      critical(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 })),
      critical(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign)),
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(getKeyIdentifier(publicKey))),
    ],
  })
  return { certificate, key: exportKey(privateKey) }
}

/** @returns expiresAt in milliseconds since the epoch */
export function createLeaf(
  authority: CertificateWithKey,
  host: string,
  now: number,
): CertificateWithKey & { expiresAt: number } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuerKey = createPrivateKey(authority.key)
  const { tbsCertificate: issuer } = AsnConvert.parse(decodePem(authority.certificate), Certificate)
  const keyIdentifier = new KeyIdentifier(getKeyIdentifier(createPublicKey(issuerKey)))
  const expiresAt = now + LEAF_MS
  const certificate = signCertificate({
    // Clients use the subjectAltName. A common name could have 64 characters only.
    subject: new Name([]),
    issuer: issuer.subject,
    notBefore: now - BACKDATED_MS,
    notAfter: expiresAt,
    publicKey,
    issuerKey,
    extensions: [
      critical(id_ce_subjectAltName, new SubjectAlternativeName([new GeneralName({ dNSName: host })])),
      critical(id_ce_basicConstraints, new BasicConstraints({ cA: false })),
      critical(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature)),
      extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(getKeyIdentifier(publicKey))),
      extension(id_ce_authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier })),
    ],
  })
  return { certificate, key: exportKey(privateKey), expiresAt }
}

type CertificateFields = {
  subject: Name
  issuer: Name
  notBefore: number
  notAfter: number
  publicKey: KeyObject
  issuerKey: KeyObject
  extensions: Extension[]
}

/** Returns PEM. */
function signCertificate({
  subject,
  issuer,
  notBefore,
  notAfter,
  publicKey,
  issuerKey,
  extensions,
}: CertificateFields): string {
  const signatureAlgorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 })
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: newSerialNumber(),
    signature: signatureAlgorithm,
    issuer,
    validity: new Validity({ notBefore: new Date(notBefore), notAfter: new Date(notAfter) }),
    subject,
    subjectPublicKeyInfo: AsnConvert.parse(exportPublicKey(publicKey), SubjectPublicKeyInfo),
    extensions: new Extensions(extensions),
  })
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), issuerKey)
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm,
    signatureValue: toArrayBuffer(signature),
  })
  return encodePem(Buffer.from(AsnConvert.serialize(certificate)))
}

const createName = (commonName: string): Name =>
  new Name([
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({
        type: COMMON_NAME,
        value: new AttributeValue({ utf8String: commonName }),
      }),
    ]),
  ])

const createExtension = (extnID: string, value: object, critical: boolean): Extension =>
  new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) })

const critical = (id: string, value: object): Extension => createExtension(id, value, true)
const extension = (id: string, value: object): Extension => createExtension(id, value, false)

/** Positive, as RFC 5280 requires, and without leading zeros. */
function newSerialNumber(): ArrayBuffer {
  const bytes = randomBytes(SERIAL_BYTES)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return toArrayBuffer(bytes)
}

function getKeyIdentifier(publicKey: KeyObject): ArrayBuffer {
  const { subjectPublicKey } = AsnConvert.parse(exportPublicKey(publicKey), SubjectPublicKeyInfo)
  const hash = createHash('sha256').update(Buffer.from(subjectPublicKey)).digest()
  return toArrayBuffer(hash.subarray(0, KEY_IDENTIFIER_BYTES))
}

const exportPublicKey = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })

const exportKey = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

const toArrayBuffer = (bytes: Buffer): ArrayBuffer => new Uint8Array(bytes).buffer

const encodePem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${(der.toString('base64').match(/.{1,64}/g) ?? []).join('\n')}\n-----END CERTIFICATE-----\n`

const decodePem = (pem: string): Buffer => Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64')
