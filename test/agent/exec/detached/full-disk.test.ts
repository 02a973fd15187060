// A full disk: a start is refused and leaves nothing, and what runs waits for room rather than lose a byte.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { waitUntil } from '../exec-app.ts'
import { isNative, newHome, openAgent } from './support.ts'

const MiB = 1024 * 1024

/** A file system of 2 MiB, where the test may mount one. */
function smallDisk(t: Test, home: string): string | undefined {
  const at = join(home, '.state')
  mkdirSync(at)
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'boxwood-test', at], {
    stdio: 'ignore',
  })
  if (status !== 0) return undefined
  t.teardown(() => spawnSync('umount', ['--lazy', at]))
  return at
}

async function fullAgent(t: Test) {
  const home = newHome(t)
  const disk = smallDisk(t, home)
  if (disk === undefined) return undefined
  const agent = await openAgent(t, home)
  const fill = () => {
    try {
      writeFileSync(join(disk, 'full'), Buffer.alloc(4 * MiB))
    } catch (error) {
      t.match(error, { code: 'ENOSPC' })
    }
  }
  return { ...agent, fill, empty: () => rmSync(join(disk, 'full')) }
}

const begun = (home: string) => existsSync(join(home, 'begun'))

const SKIP = 'a file system cannot be mounted here'

t.test('a start is refused in the system’s words, and leaves nothing', async (t) => {
  const agent = await fullAgent(t)
  if (agent === undefined) return t.pass(SKIP, { skip: SKIP })
  const { refused, start, list, dir, fill, empty } = agent
  fill()
  t.match(await refused('echo $$ >>starts'), {
    status: 502,
    code: 'exec_failed',
    message: /no space left on device/i,
  })
  t.same(await list(), [])
  const folders = () => readdirSync(dir).filter((name) => name.startsWith('p_'))
  t.same(folders(), [])
  empty()
  await start('true')
  t.equal(folders().length, 1)
})

t.test('what runs waits for room, and nothing is missing', { skip: !isNative }, async (t) => {
  const agent = await fullAgent(t)
  if (agent === undefined) return t.pass(SKIP, { skip: SKIP })
  const { start, ended, get, fill, empty, home } = agent
  const { processId } = await start('while [ ! -e go ]; do sleep 0.02; done; echo >begun; seq 100000; exit 3')
  const all = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join('')
  fill()
  writeFileSync(join(home, 'go'), '')
  await waitUntil(
    'it has no more room',
    () => statSync(get(processId).logs.stdout.path).size % 4096 === 0 && begun(home),
  )
  t.equal(get(processId).exit, null)
  empty()
  t.match(await ended(processId), { exitCode: 3 })
  const { stdout } = get(processId).logs
  const { bytes } = await stdout.read(0, MiB)
  t.equal(createHash('sha256').update(bytes).digest('hex'), createHash('sha256').update(all).digest('hex'))
})

t.test('it can be ended, and how it ended is still told', { skip: !isNative }, async (t) => {
  const agent = await fullAgent(t)
  if (agent === undefined) return t.pass(SKIP, { skip: SKIP })
  const { start, kill, get, fill, dir } = agent
  const { processId } = await start('exec sleep 600')
  fill()
  t.match(await kill(processId), { wasRunning: true, signal: 'TERM' })
  t.match(get(processId).exit, { status: 'killed', signal: 'TERM' })
  t.ok(statSync(join(dir, processId, 'exit')).size > 0)
  t.match(readFileSync(join(dir, processId, 'exit'), 'utf8'), /^- 15 /)
})

t.test(
  'a limit on the size of files is for files, not for what a command prints',
  { skip: !isNative },
  async (t) => {
    const { start, ended, get } = await openAgent(t, newHome(t))
    const { processId } = await start('ulimit -f 1; head -c 300000 /dev/zero; exit 4')
    t.match(await ended(processId), { exitCode: 4 })
    t.equal(await get(processId).logs.stdout.size(), 300_000)
  },
)
