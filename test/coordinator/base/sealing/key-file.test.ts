// The file of the master keys: its form, its mode, and a new key.
import { chmodSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import {
  addMasterKey,
  createMasterKey,
  type KeyFile,
  locateKeyFile,
  readKeyFile,
} from '../../../../coordinator/base/sealing/key-file.ts'
import { newMasterKey } from '../../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../../coordinator/base/sealing/master-keyring.ts'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const CONTEXT = { workspaceId: 'ws_1', rowId: 'sec_1' }

test('a key that was created is read again, and a new one is added before it', async (t) => {
  const dataDir = createTempDir(t, 'keys')
  const file = locateKeyFile({ dataDir, masterKeysFile: null })
  t.equal(file.path, join(dataDir, 'master-keys'))
  t.equal(await readKeyFile(file), null)
  const { key, store } = createMasterKey(file)
  await store()
  t.equal(statSync(file.path).mode & 0o777, 0o600)
  const { sealed } = createKeyring([key]).seal(new SecretValue('value'), CONTEXT)
  const read = await readKeyFile(file)
  if (read === null) throw new Error('the file is missing')
  t.equal(createKeyring(read.keys).open(sealed, CONTEXT).reveal(), 'value')
  const id = await addMasterKey(file, read.text)
  t.strictSame(
    (await readKeyFile(file))?.keys.map(({ id }) => id),
    [id, key.id],
  )
  t.equal(statSync(file.path).mode & 0o777, 0o600)
  t.ok(readFileSync(file.path, 'utf8').endsWith(read.text))
})

test('only the user of the coordinator may use the file', async (t) => {
  const path = join(createTempDir(t, 'keys'), 'keys')
  const link = `${path}-link`
  writeFileSync(path, `${newMasterKey().line}\n`)
  symlinkSync(path, link)
  const own = { path, isMounted: false }
  // Kubernetes mounts links, and gives the files to a group.
  const mounted = { path: link, isMounted: true }
  for (const [mode, isOwnAccepted, isMountedAccepted] of [
    [0o600, true, true],
    [0o400, true, true],
    [0o440, false, true],
    [0o640, false, true],
    [0o660, false, false],
    [0o644, false, false],
    [0o604, false, false],
  ] as const) {
    chmodSync(path, mode)
    for (const [file, isAccepted] of [
      [own, isOwnAccepted],
      [mounted, isMountedAccepted],
    ] as const) {
      const name = `${mode.toString(8)} ${file.isMounted ? 'mounted' : 'own'}`
      if (isAccepted) t.equal((await readKeyFile(file))?.keys.length, 1, name)
      else await t.rejects(readKeyFile(file), { name: 'StartError', message: /mode 0\d{3}/ }, name)
    }
  }
})

test('a file without valid keys is refused, and the message has no part of a key', async (t) => {
  const file: KeyFile = { path: join(createTempDir(t, 'keys'), 'keys'), isMounted: true }
  const { line, id } = newMasterKey()
  const [, key = ''] = line.split(' ')
  for (const [name, text, problem] of [
    ['empty', '', 'it has no key'],
    ['comments only', '# keys\n\n', 'it has no key'],
    ['without id', `${key}\n`, 'line 1 is not a key'],
    ['id with a dot', `a.b ${key}\n`, 'line 1 is not a key'],
    ['short key', `${line}\na ${Buffer.alloc(31).toString('base64')}\n`, 'line 2 is not a key'],
    ['base64url', `a ${Buffer.alloc(32, 255).toString('base64url')}\n`, 'line 1 is not a key'],
    ['a third word', `${line} x\n`, 'line 1 is not a key'],
    ['repeated id', `${line}\n# again\n${line}\n`, `line 3 repeats the key id ${id}`],
    ['large', '#'.repeat(70_000), 'larger than'],
  ] as const) {
    writeFileSync(file.path, text, { mode: 0o600 })
    const error = (await readKeyFile(file).catch((error: unknown) => error)) as Error
    t.match(error, { name: 'StartError' }, name)
    t.ok(error.message.includes(problem), `${name}: ${error.message}`)
    t.notOk(error.message.includes(key.slice(0, 8)), name)
  }
  writeFileSync(file.path, `# The key of 2026\r\n\n  2026-01\t${key}  \r\n`)
  t.strictSame(
    (await readKeyFile(file))?.keys.map(({ id }) => id),
    ['2026-01'],
  )
})
