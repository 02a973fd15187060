// The certificates of brokered hosts: what verifies them, who can create them, and how long they are used.
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import t from 'tap'
import { newMasterKey } from '../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../coordinator/base/sealing/master-keyring.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { createWorkspaceAuthorities, MAX_CACHED_LEAVES } from '../../../coordinator/secrets/authorities.ts'
import { findAuthority } from '../../../coordinator/secrets/authority-store.ts'
import { createAuthority, createLeaf } from '../../../coordinator/secrets/certificates.ts'
import { onEachDatabase } from '../../support/db.ts'
import { requires } from '../../support/requires.ts'
import { sqliteForTest } from '../../support/sqlite.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { createOwner, createTestClock } from '../../support/workspace.ts'

const HOUR_MS = 3_600_000
const LONG_HOST = `${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`

async function createAuthorities(db: Db) {
  const { workspaceId } = await createOwner(db)
  const clock = createTestClock(Date.now())
  const keyring = createKeyring([newMasterKey()])
  return { workspaceId, clock, keyring, authorities: createWorkspaceAuthorities({ db, clock, keyring }) }
}

t.test('a client that trusts the authority connects to the host of the leaf only', async (t) => {
  const { authorities, workspaceId } = await createAuthorities(await sqliteForTest(t))
  const ca = await authorities.getCertificate(workspaceId)
  const { key, certificate } = await authorities.getLeaf(workspaceId, LONG_HOST)
  const server = createServer({ key, cert: certificate }, (socket) => socket.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  async function handshake(host: string, trusted: string): Promise<string> {
    const socket = connect({ host: '127.0.0.1', port, servername: host, ca: trusted })
    try {
      await once(socket, 'secureConnect')
      return 'connected'
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code)
    } finally {
      socket.destroy()
    }
  }
  t.equal(await handshake(LONG_HOST, ca), 'connected')
  t.equal(await handshake('other.example.com', ca), 'ERR_TLS_CERT_ALTNAME_INVALID')
  const { certificate: otherCa } = createAuthority(`Boxwood ${workspaceId}`, Date.now())
  t.not(
    await handshake(LONG_HOST, otherCa),
    'connected',
    'the authority of another workspace with the same name',
  )
})

t.test('OpenSSL accepts the chain with all checks', { skip: requires('openssl') }, (t) => {
  const dir = createTempDir(t, 'certificates')
  const authority = createAuthority('Boxwood ws_0123456789', Date.now())
  const leaf = createLeaf(authority, LONG_HOST, Date.now())
  const [caFile, leafFile] = [join(dir, 'ca.pem'), join(dir, 'leaf.pem')]
  writeFileSync(caFile, authority.certificate)
  const verify = (certificate: string, host: string, ...options: string[]) => {
    writeFileSync(leafFile, certificate)
    const args = [
      'verify',
      '-x509_strict',
      '-purpose',
      'sslserver',
      '-verify_hostname',
      host,
      '-CAfile',
      caFile,
      ...options,
    ]
    const { status, stdout, stderr } = spawnSync('openssl', [...args, leafFile], { encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }
  t.match(verify(leaf.certificate, LONG_HOST), { status: 0 })
  t.match(verify(leaf.certificate, 'other.example.com'), { status: 2, output: /hostname mismatch/i })
  const after = Math.floor(Date.now() / 1000) + 49 * 3600
  t.match(verify(leaf.certificate, LONG_HOST, '-attime', `${after}`), { output: /expired/ })
  const text = spawnSync('openssl', ['x509', '-in', caFile, '-noout', '-text'], { encoding: 'utf8' }).stdout
  t.match(text, /Basic Constraints: critical\s+CA:TRUE, pathlen:0\s/)
  t.match(text, /Key Usage: critical\s+Certificate Sign\s/)
  // pathlen 0: a leaf is not an authority.
  writeFileSync(caFile, authority.certificate + leaf.certificate)
  const forged = createLeaf({ certificate: leaf.certificate, key: leaf.key }, LONG_HOST, Date.now())
  t.match(verify(forged.certificate, LONG_HOST, '-untrusted', leafFile), { status: 2 })
  t.end()
})

t.test(
  'the certificates are valid from an hour before, the leaf for 48 hours, the authority for 10 years',
  (t) => {
    const now = Math.floor(Date.now() / 1000) * 1000
    const authority = createAuthority('Boxwood ws_1', now)
    const leaf = createLeaf(authority, 'api.example.com', now)
    const [ca, certificate] = [
      new X509Certificate(authority.certificate),
      new X509Certificate(leaf.certificate),
    ]
    t.equal(leaf.expiresAt, now + 48 * HOUR_MS)
    t.equal(certificate.validToDate.getTime(), leaf.expiresAt)
    for (const { validFromDate } of [ca, certificate]) t.equal(validFromDate.getTime(), now - HOUR_MS)
    t.equal(Math.round((ca.validToDate.getTime() - now) / (365.25 * 24 * HOUR_MS)), 10)
    t.equal(certificate.subjectAltName, 'DNS:api.example.com')
    t.ok(certificate.verify(ca.publicKey) && certificate.checkIssued(ca))
    const serials = Array.from(
      { length: 50 },
      () => new X509Certificate(createAuthority('x', now).certificate).serialNumber,
    )
    t.equal(new Set(serials).size, serials.length)
    t.ok(
      serials.every((serial) => /^[4-7][0-9A-F]{31}$/.test(serial)),
      'positive numbers of 16 bytes',
    )
    t.end()
  },
)

await onEachDatabase(t, async (t, newDb) => {
  await t.test('concurrent first uses of a workspace create one authority', async (t) => {
    const db = await newDb(t)
    const { authorities, workspaceId, clock, keyring } = await createAuthorities(db)
    const others = createWorkspaceAuthorities({ db, clock, keyring })
    const [first, ...rest] = await Promise.all([
      authorities.getCertificate(workspaceId),
      authorities.getCertificate(workspaceId),
      others.getCertificate(workspaceId),
    ])
    t.strictSame(new Set(rest), new Set([first]))
    const leaf = new X509Certificate((await others.getLeaf(workspaceId, 'a.example.com')).certificate)
    t.ok(leaf.verify(new X509Certificate(first ?? '').publicKey))
    const row = await findAuthority(db, workspaceId)
    t.match(row, { key_id: keyring.activeKeyId, private_key: /^v1\./ })
    await t.rejects(authorities.getCertificate('ws_unknown'))
  })
})

t.test('a leaf is shared until an hour before it expires', async (t) => {
  const { authorities, workspaceId, clock } = await createAuthorities(await sqliteForTest(t))
  const get = (host = 'a.example.com') => authorities.getLeaf(workspaceId, host)
  const [leaf, concurrent] = await Promise.all([get(), get()])
  t.equal(concurrent, leaf)
  clock.advance(46 * HOUR_MS)
  t.equal(await get(), leaf)
  clock.advance(HOUR_MS)
  const [renewed, also] = await Promise.all([get(), get()])
  t.not(renewed.certificate, leaf.certificate)
  t.equal(also, renewed)
  t.equal(renewed.expiresAt, clock.now() + 48 * HOUR_MS)
})

t.test('the least recently used leaf is removed from the full cache', async (t) => {
  const { authorities, workspaceId } = await createAuthorities(await sqliteForTest(t))
  const get = (name: string) => authorities.getLeaf(workspaceId, `${name}.example.com`)
  const [used, unused] = [await get('used'), await get('unused')]
  for (let index = 0; index < MAX_CACHED_LEAVES - 2; index++) await get(`host${index}`)
  t.equal(await get('used'), used)
  await get('new')
  t.equal(await get('used'), used)
  t.not(await get('unused'), unused)
})
