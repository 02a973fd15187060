// The installer gives its files to the user of the agent, who exchanges a directory for a link to files of root.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { changeOwner } from '../../../agent/setup/change-owner.ts'
import { firstOutput } from '../../support/first-output.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const UID = 54_321
const FILES = 3000
const isRoot = process.getuid?.() === 0

/** Replaces the directory by a link as soon as it may. */
const EXCHANGE = `
  const { renameSync, symlinkSync } = require('node:fs')
  const [dir, target] = process.argv.slice(1)
  console.log('ready')
  for (;;) {
    try {
      renameSync(dir, dir + '.moved')
      break
    } catch {}
  }
  symlinkSync(target, dir)
`

const options = isRoot ? {} : { skip: 'only root can change the owner of a file' }
t.test('no file of root changes its owner', options, async (t) => {
  const root = createTempDir(t, 'owner')
  chmodSync(root, 0o755)
  const [prefix, victim] = [join(root, 'prefix'), join(root, 'victim')]
  const versions = join(prefix, 'versions')
  const build = join(versions, 'build')
  for (const dir of [build, victim]) {
    mkdirSync(dir, { recursive: true })
    for (let n = 0; n < FILES; n += 1) writeFileSync(join(dir, `file-${n}`), '')
  }
  const hostile = spawn(process.execPath, ['-e', EXCHANGE, build, victim], {
    uid: UID,
    gid: UID,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.teardown(() => hostile.kill('SIGKILL'))
  const exited = once(hostile, 'exit')
  await firstOutput(hostile)
  await changeOwner(prefix, { uid: UID, gid: UID, home: root, name: 'other' })
  await exited
  const changed = readdirSync(victim).filter((name) => statSync(join(victim, name)).uid !== 0)
  t.same(changed, [])
  const moved = `${build}.moved`
  t.ok(readdirSync(moved).every((name) => statSync(join(moved, name)).uid === UID))
  t.equal(statSync(prefix).uid, UID)
})
