// The other tests of this folder once more as an ordinary user, when the suite runs as root.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isRoot } from './support.ts'

const HERE = import.meta.dirname
const UID = '54321'
const become = [
  '--reuid',
  UID,
  '--regid',
  UID,
  '--clear-groups',
  '--inh-caps=-all',
  '--bounding-set=-all',
  '--',
]

function reason(): string | false {
  if (!isRoot) return 'these are the ordinary user already'
  const reachable = spawnSync('setpriv', [...become, 'test', '-r', join(HERE, 'support.ts')]).status === 0
  return reachable ? false : 'an ordinary user cannot reach the project folder'
}

const skip = reason()
for (const file of readdirSync(HERE).filter((name) => name.endsWith('.test.ts'))) {
  if (join(HERE, file) === import.meta.filename) continue
  t.test(file, { skip }, (test) => {
    const { TAP: _tap, ...env } = process.env
    const run = spawnSync('setpriv', [...become, process.execPath, join(HERE, file)], {
      encoding: 'utf8',
      env: { ...env, HOME: '/nonexistent', TAP: '1' },
    })
    test.equal(run.status, 0, 'passes')
    if (run.status !== 0) test.comment(run.stdout + run.stderr)
    test.end()
  })
}
