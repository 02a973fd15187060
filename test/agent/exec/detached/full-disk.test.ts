// A full disk: starts fail and leave no files behind, and running commands wait for space instead of losing output.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'
import { createHome, isNativeRunner, openAgent } from './support.ts'

const MiB = 1024 * 1024

/** Mounts a file system of 2 MiB on the state directory. undefined where the test may not mount. */
function mountSmallDisk(t: Test, home: string): string | undefined {
  const stateDir = join(home, '.state')
  mkdirSync(stateDir)
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'boxwood-test', stateDir], {
    stdio: 'ignore',
  })
  if (status !== 0) return undefined
  t.teardown(() => spawnSync('umount', ['--lazy', stateDir]))
  return stateDir
}

/** undefined where the test may not mount. */
async function createAgentOnSmallDisk(t: Test) {
  const home = createHome(t)
  const stateDir = mountSmallDisk(t, home)
  if (stateDir === undefined) return undefined
  const agent = await openAgent(t, home)
  const fillDisk = () => {
    try {
      writeFileSync(join(stateDir, 'full'), Buffer.alloc(4 * MiB))
    } catch (error) {
      t.match(error, { code: 'ENOSPC' })
    }
  }
  return { ...agent, fillDisk, freeDisk: () => rmSync(join(stateDir, 'full')) }
}

const SKIP = 'mounting a file system is not permitted'

t.test("a start fails with the operating system's error message and leaves no files behind", async (t) => {
  const agent = await createAgentOnSmallDisk(t)
  if (agent === undefined) return t.pass(SKIP, { skip: SKIP })
  const { expectStartError, start, list, dir, fillDisk, freeDisk } = agent
  fillDisk()
  t.match(await expectStartError('echo $$ >>starts'), {
    status: 502,
    code: 'exec_failed',
    message: /no space left on device/i,
  })
  t.same(await list(), [])
  const listProcessDirs = () => readdirSync(dir).filter((name) => name.startsWith('p_'))
  t.same(listProcessDirs(), [])
  freeDisk()
  await start('true')
  t.equal(listProcessDirs().length, 1)
})

t.test('a running command waits for space and loses no output', { skip: !isNativeRunner }, async (t) => {
  const agent = await createAgentOnSmallDisk(t)
  if (agent === undefined) return t.pass(SKIP, { skip: SKIP })
  const { start, waitForExit, getProcess, fillDisk, freeDisk, home } = agent
  const { processId } = await start(
    'while [ ! -e go ]; do sleep 0.02; done; echo >writing; seq 100000; exit 3',
  )
  const all = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join('')
  fillDisk()
  writeFileSync(join(home, 'go'), '')
  await waitUntil(
    'the command writes and the log has no partly filled block',
    () =>
      statSync(getProcess(processId).logs.stdout.path).size % 4096 === 0 && existsSync(join(home, 'writing')),
  )
  t.equal(getProcess(processId).exit, null)
  freeDisk()
  t.match(await waitForExit(processId), { exitCode: 3 })
  const { stdout } = getProcess(processId).logs
  const { bytes } = await stdout.read(0, MiB)
  t.equal(createHash('sha256').update(bytes).digest('hex'), createHash('sha256').update(all).digest('hex'))
})

t.test('terminates a process on a full disk and records its exit', { skip: !isNativeRunner }, async (t) => {
  const agent = await createAgentOnSmallDisk(t)
  if (agent === undefined) return t.pass(SKIP, { skip: SKIP })
  const { start, kill, getProcess, fillDisk, dir } = agent
  const { processId } = await start('exec sleep 600')
  fillDisk()
  t.match(await kill(processId), { wasRunning: true, signal: 'TERM' })
  t.match(getProcess(processId).exit, { status: 'killed', signal: 'TERM' })
  t.ok(statSync(join(dir, processId, 'exit')).size > 0)
  t.match(readFileSync(join(dir, processId, 'exit'), 'utf8'), /^- 15 /)
})

t.test(
  'a file size limit of the command does not apply to its output',
  { skip: !isNativeRunner },
  async (t) => {
    const { start, waitForExit, getProcess } = await openAgent(t, createHome(t))
    const { processId } = await start('ulimit -f 1; head -c 300000 /dev/zero; exit 4')
    t.match(await waitForExit(processId), { exitCode: 4 })
    t.equal(await getProcess(processId).logs.stdout.size(), 300_000)
  },
)
