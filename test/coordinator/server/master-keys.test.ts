// The master keys of a coordinator: their creation, a rotation, a missing key, and backups.
import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { newMasterKey } from '../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../coordinator/base/sealing/master-keyring.ts'
import { SecretValue } from '../../../coordinator/base/sealing/secret-value.ts'
import { deploymentModule } from '../../../coordinator/deployment/module.ts'
import { checkMasterKeys } from '../../../coordinator/server/master-keys/check.ts'
import { rewrapOldValues } from '../../../coordinator/server/master-keys/rewrap.ts'
import { type CoordinatorOptions, startTestCoordinator } from '../../support/coordinator.ts'
import { onEachDatabase } from '../../support/db.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createOwner } from '../../support/workspace.ts'
import { backUp, restore } from './backup/support.ts'

const rotate = (dataDir: string, env: Record<string, string> = {}) =>
  promisify(execFile)(join(PROJECT_DIR, 'boxwood'), ['rotate-master-key'], {
    env: { ...process.env, BOXWOOD_DATA: dataDir, ...env },
  })

/** Starts a coordinator, and returns whether the key of the workspace's authority, which is stored encrypted, can be used. */
async function start(t: Test, options: CoordinatorOptions) {
  const coordinator = await startTestCoordinator(t, options)
  const { context, owner } = coordinator.instance
  const { workspaceAuthorities: authorities, keyring } = context
  const workspaceId = owner?.workspaceId ?? ''
  return {
    ...coordinator,
    keyring,
    async useAuthority() {
      const ca = new X509Certificate(await authorities.getCertificate(workspaceId))
      const { certificate } = await authorities.getLeaf(workspaceId, 'api.example.com')
      return new X509Certificate(certificate).verify(ca.publicKey) ? ca.fingerprint256 : 'wrong authority'
    },
  }
}

const listKeyLines = (file: string): string[] => readFileSync(file, 'utf8').trim().split('\n')

t.test(
  'a key is created at the first start, replaced by a rotation, and cannot be removed before',
  async (t) => {
    const dataDir = createTempDir(t, 'master-keys')
    const file = join(dataDir, 'master-keys')
    await t.rejects(rotate(dataDir), { code: 1, stderr: /not the data directory of a coordinator/ })
    const first = await start(t, { dataDir })
    t.equal(statSync(file).mode & 0o777, 0o600)
    const authority = await first.useAuthority()
    await first.close()

    const [oldLine = ''] = listKeyLines(file)
    const { stdout } = await rotate(dataDir)
    const [newLine = '', ...others] = listKeyLines(file)
    t.same(others, [oldLine])
    const [newId = '', oldId = ''] = [newLine, oldLine].map((line) => line.split(' ')[0])
    t.match(stdout, `Added the master key ${newId} `)
    t.notOk(stdout.includes(newLine.split(' ')[1] ?? ''), 'the key is not printed')

    writeFileSync(file, `${newLine}\n`)
    // The authority, the test value, the key of the agents and the secret of the owner.
    const message = new RegExp(`${file}: ${oldId} \\(4 rows\\)\\. .*BOXWOOD_MASTER_KEYS`)
    await t.rejects(start(t, { dataDir }), { name: 'StartError', message }, 'the old key is still used')
    rmSync(file)
    await t.rejects(start(t, { dataDir }), { name: 'StartError', message }, 'there is no file')
    t.notOk(existsSync(file), 'a start without the keys creates none')

    writeFileSync(file, `${newLine}\n${oldLine}\n`, { mode: 0o600 })
    const lines: Record<string, unknown>[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const second = await start(t, { dataDir, log })
    t.equal(second.keyring.activeKeyId, newId)
    await waitUntil('the log says that the old key is not used any more', () =>
      lines.some(
        ({ keyId, msg }) => keyId === oldId && /^no value uses this old master key/.test(String(msg)),
      ),
    )
    t.equal(await second.useAuthority(), authority)
    await second.close()

    writeFileSync(file, `${newLine}\n`)
    t.equal(
      await (await start(t, { dataDir })).useAuthority(),
      authority,
      'the old key is not needed any more',
    )
    chmodSync(file, 0o644)
    const other = createTempDir(t, 'master-keys')
    renameSync(file, join(other, 'master-keys'))
    await t.rejects(start(t, { dataDir: other }), { name: 'StartError', message: /has mode 0644/ })
  },
)

t.test('a restored backup can use its secrets; a backup never has the keys of a mounted file', async (t) => {
  const source = await start(t, {})
  const authority = await source.useAuthority()
  const restored = await restore(t, await backUp(t, source.dataDir, { includeBoxes: false }))
  t.equal(await (await start(t, { dataDir: restored })).useAuthority(), authority)
  await source.close()

  const mounted = join(createTempDir(t, 'mounted'), 'keys')
  const env = { BOXWOOD_MASTER_KEYS: mounted }
  const { dataDir } = source
  await t.rejects(start(t, { dataDir, env }), { name: 'StartError', message: /keys does not exist/ })
  // The operator copies the file and forgets the original.
  const text = readFileSync(join(dataDir, 'master-keys'), 'utf8')
  writeFileSync(mounted, text, { mode: 0o400 })
  const withMounted = await start(t, { dataDir, env })
  t.equal(await withMounted.useAuthority(), authority)
  await t.rejects(rotate(dataDir, env), {
    code: 1,
    stderr: /does not write .*keys, the file of BOXWOOD_MASTER_KEYS/,
  })
  const key = text.trim().split(' ')[1] ?? ''
  for (const isRunning of [true, false]) {
    if (!isRunning) await withMounted.close()
    const backup = await backUp(t, dataDir, { includeBoxes: false, env })
    const name = isRunning ? 'of a running coordinator' : 'offline'
    t.notOk(readFileSync(backup).includes(key), name)
    const target = await restore(t, backup)
    await t.rejects(
      start(t, { dataDir: target }),
      { name: 'StartError', message: /Master keys are missing/ },
      name,
    )
    t.equal(await (await start(t, { dataDir: target, env })).useAuthority(), authority, name)
  }
})

await onEachDatabase(t, async (t, newDb) => {
  await t.test('of coordinators that create a key at the same time, one starts', async (t) => {
    const db = await newDb(t)
    const stored: string[] = []
    const start = async () => {
      const key = newMasterKey()
      const file = { path: `/data-of-${key.id}/master-keys`, isMounted: false }
      const store = async () => void stored.push(key.id)
      await checkMasterKeys({ db, columns: [], masterKeys: { file, keyring: createKeyring([key]), store } })
    }
    const results = await Promise.allSettled([start(), start(), start()])
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
    t.equal(stored.length, 1, 'the keys of the others are not stored')
    t.match(
      results.filter(({ status }) => status === 'rejected'),
      Array.from({ length: 2 }, () => ({
        reason: { name: 'StartError', message: /not those of the database.* set BOXWOOD_MASTER_KEYS/ },
      })),
    )
  })

  await t.test('keys that do not decrypt the test value are refused', async (t) => {
    const db = await newDb(t)
    const right = newMasterKey()
    const columns = deploymentModule().sealedColumns ?? []
    const file = { path: '/run/keys', isMounted: true }
    const store = async () => undefined
    const check = (key: typeof right, others: (typeof right)[] = []) =>
      checkMasterKeys({ db, columns, masterKeys: { file, keyring: createKeyring([key, ...others]), store } })
    await check(right)
    const wrong = newMasterKey()
    await t.rejects(check(wrong), {
      name: 'StartError',
      message: `Master keys are missing in /run/keys: ${right.id} (1 row). `,
    })
    await t.rejects(check({ ...wrong, id: right.id }), {
      name: 'StartError',
      message: /^The master keys in \/run\/keys are not those of the database: .* BOXWOOD_MASTER_KEYS names/,
    })
    await check(wrong, [right])
    await check(right)
  })

  await t.test('all values get the new key, except a damaged one', async (t) => {
    const db = await newDb(t)
    const { workspaceId } = await createOwner(db)
    const [oldKey, newKey] = [newMasterKey(), newMasterKey()]
    const before = createKeyring([oldKey])
    const keyring = createKeyring([newKey, oldKey])
    const after = createKeyring([newKey])
    const rows = Array.from({ length: 250 }, (_, n) => {
      const id = `sec_${String(n).padStart(3, '0')}`
      const { sealed, keyId } = before.seal(new SecretValue(`value ${n}`), { workspaceId, rowId: id })
      return {
        id,
        workspace_id: workspaceId,
        name: id,
        description: null,
        hosts: '[]',
        locations: '["header"]',
        placeholder: id,
        value: sealed,
        key_id: keyId,
        scope: 'workspace' as const,
        created_by: 'user:x',
        created_at: 1,
        updated_at: 1,
        last_rotated_at: null,
      }
    })
    await db.insertInto('secrets').values(rows).execute()
    await db.updateTable('secrets').set({ value: 'v1.damaged' }).where('id', '=', 'sec_101').execute()
    const lines: Record<string, unknown>[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const columns = [{ table: 'secrets', id: 'id', value: 'value' }] as const
    await rewrapOldValues({ db, keyring, columns, log, signal: new AbortController().signal })
    t.match(lines, [
      { table: 'secrets', id: 'sec_101' },
      { keyId: oldKey.id, values: 1 },
    ])
    for (const { id, value, key_id } of await db.selectFrom('secrets').selectAll().orderBy('id').execute()) {
      if (id === 'sec_101') t.equal(key_id, oldKey.id)
      else if (key_id !== newKey.id) t.fail(`${id} has the key ${key_id}`)
      else t.equal(after.open(value, { workspaceId, rowId: id }).reveal(), `value ${Number(id.slice(4))}`)
    }
  })
})
