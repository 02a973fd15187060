// The signing keys of the issuer survive restarts and a rotation of the master keys, and no backup has one in clear text.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createLocalJWKSet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { addMasterKey } from '../../../coordinator/base/sealing/key-file.ts'
import { backUp } from '../../coordinator/server/backup/support.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { AUDIENCE, DAY_MS, type Federation, ISSUER, startFederation } from './support.ts'

const boxwood = (dataDir: string, ...args: string[]) =>
  promisify(execFile)(join(PROJECT_DIR, 'boxwood'), args, {
    env: { ...process.env, BOXWOOD_DATA: dataDir },
  })

/** @param earlier a coordinator on the same data */
async function start(t: Test, dataDir: string, earlier?: Pick<Federation, 'infra'>) {
  const federation = await startFederation(t, { dataDir, ...(earlier && { infra: earlier.infra }) })
  const { send, instance, workspaceId, box, now } = federation
  const readKeys = async () => (await send('GET', '/oidc/jwks')).json
  return {
    ...federation,
    readKeys,
    issue: async () =>
      (await instance.context.issuer.issue({ workspaceId, boxId: box.id }, AUDIENCE)).content.reveal(),
    verify: async (token: string) =>
      (
        await jwtVerify(token, createLocalJWKSet(await readKeys()), {
          issuer: ISSUER,
          audience: AUDIENCE,
          currentDate: new Date(now()),
        })
      ).payload.sub,
  }
}

t.test('restarts, a new master key, and a backup', async (t) => {
  const dataDir = createTempDir(t, 'federation')
  const first = await start(t, dataDir)
  const subject = `workspace:${first.workspaceId}:box:${first.box.id}`
  const [token, published] = [await first.issue(), await first.readKeys()]
  t.equal(await first.verify(token), subject)
  const backup = readFileSync(await backUp(t, dataDir, { includeBoxes: false }), 'latin1')
  t.ok(backup.includes(published.keys[0].kid), 'it has the public keys')
  for (const secret of ['PRIVATE KEY', token]) t.notOk(backup.includes(secret))
  await first.close()

  const file = join(dataDir, 'master-keys')
  await addMasterKey({ path: file, isMounted: false }, readFileSync(file, 'utf8'))
  const second = await start(t, dataDir, first)
  t.same(await second.readKeys(), published)
  t.equal(await second.verify(token), subject, 'of before the restart')
  await waitUntil('no signing key uses the old master key', async () => {
    const rows = await second.db.selectFrom('federation_keys').select('key_id').execute()
    return rows.every(({ key_id }) => key_id === second.instance.context.keyring.activeKeyId)
  })
  await second.close()
  const [line = ''] = readFileSync(file, 'utf8').split('\n')
  writeFileSync(file, `${line}\n`)
  const third = await start(t, dataDir, first)
  t.equal(await third.verify(await third.issue()), subject)
})

t.test('boxwood federation rotate', async (t) => {
  const dataDir = createTempDir(t, 'federation')
  const federation = await start(t, dataDir)
  const before = await federation.issue()
  await t.rejects(boxwood(dataDir, 'federation', 'rotate'), {
    code: 1,
    stdout: /Nothing was changed.*try again at \d{4}-/s,
  })
  federation.advance(DAY_MS)
  const { stdout } = await boxwood(dataDir, 'federation', 'rotate')
  t.match(stdout, /New tokens are signed with the key [\w-]{43}\./)
  t.ok(await federation.verify(await federation.issue()))
  await t.rejects(federation.verify(before), { code: 'ERR_JWT_EXPIRED' })
  await federation.close()
  await t.rejects(boxwood(dataDir, 'federation', 'rotate'), { code: 1, stderr: /No coordinator uses/ })
})

t.test('the documents are public, and their list is for owners', async (t) => {
  const { send, api, memberKey, contractorKey } = await startFederation(t)
  const configuration = await send('GET', '/oidc/.well-known/openid-configuration', undefined, { key: null })
  t.match(configuration, {
    status: 200,
    json: { issuer: ISSUER, jwks_uri: `${ISSUER}/jwks`, id_token_signing_alg_values_supported: ['RS256'] },
  })
  t.match(configuration.headers.get('content-type'), /^application\/json/)
  t.equal(configuration.headers.get('cache-control'), 'public, max-age=3600')
  const keys = await send('GET', '/oidc/jwks', undefined, { key: null })
  t.equal(keys.status, 200)
  t.same((await api('GET', '/federation/documents')).json, {
    issuer: ISSUER,
    openidConfiguration: configuration.json,
    jwks: keys.json,
  })
  for (const [key, error] of [
    [memberKey, 'not_owner'],
    [contractorKey, 'not_allowed'],
  ] as const)
    t.equal((await api('GET', '/federation/documents', undefined, { key })).json.error, error)
})

t.test('another host serves the documents of an issuer with another origin', async (t) => {
  const { send, api } = await startFederation(t, {
    env: { BOXWOOD_OIDC_ISSUER: 'https://static.example.com/oidc' },
  })
  t.equal((await send('GET', '/oidc/jwks')).status, 404)
  t.equal((await api('GET', '/federation/documents')).json.issuer, 'https://static.example.com/oidc')
})
