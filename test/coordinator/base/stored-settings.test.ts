// The settings that later starts of a data directory use.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { storeSettings, withStoredSettings } from '../../../coordinator/base/stored-settings.ts'
import { createTempDir } from '../../support/temp-dir.ts'

t.test('the address of a start is that of the next one, unless the variable is set', async (t) => {
  const dir = createTempDir(t, 'settings')
  const env = { BOXWOOD_DATA: dir, OTHER: 'x' }
  t.same(withStoredSettings(env), env, 'nothing is stored')
  await storeSettings(dir, {})
  await storeSettings(dir, { BOXWOOD_LISTEN: '127.0.0.1:7071' })
  t.same(withStoredSettings(env), { ...env, BOXWOOD_LISTEN: '127.0.0.1:7071' })
  t.same(withStoredSettings({ ...env, BOXWOOD_LISTEN: '' }), { ...env, BOXWOOD_LISTEN: '127.0.0.1:7071' })
  const other = { ...env, BOXWOOD_LISTEN: '127.0.0.1:7072' }
  t.same(withStoredSettings(other), other)
  await storeSettings(dir, {})
  t.equal(withStoredSettings<Record<string, string>>(env).BOXWOOD_LISTEN, '127.0.0.1:7071')
})

t.test('fields of a newer version are kept, and the file is private', async (t) => {
  const dir = createTempDir(t, 'settings')
  const file = join(dir, 'settings.json')
  writeFileSync(file, '{"later":[1],"listen":"127.0.0.1:1"}')
  await storeSettings(dir, { BOXWOOD_LISTEN: '127.0.0.1:2' })
  t.same(JSON.parse(readFileSync(file, 'utf8')), { later: [1], listen: '127.0.0.1:2' })
  t.equal(statSync(file).mode & 0o777, 0o600)
})

t.test('a file that is not valid is refused with its path', async (t) => {
  for (const content of ['{', '[]', '{"listen":7071}', '"text"']) {
    const dir = createTempDir(t, 'settings')
    writeFileSync(join(dir, 'settings.json'), content)
    t.throws(
      () => withStoredSettings({ BOXWOOD_DATA: dir }),
      /settings\.json is not valid: .*Correct or delete it\./,
    )
  }
  const dir = createTempDir(t, 'settings')
  mkdirSync(join(dir, 'settings.json'))
  t.throws(() => withStoredSettings({ BOXWOOD_DATA: dir }), /settings\.json is not valid/)
})
