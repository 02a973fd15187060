// The runner of the test suite: repeated files, timeouts, totals, exit status and the processes that files leave.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { PROJECT_DIR } from '../project.ts'
import { createTempDir } from '../temp-dir.ts'
import { SLOWDOWN_VARIABLE, waitUntil } from '../wait-until.ts'
import { getOwnMountsPrefix } from './own-mounts.ts'
import { isLong, listUnusedGlobs, PARTS, runsAlone, selectPart } from './selection.ts'

const isRoot = process.getuid?.() === 0
const fixture = (name: string): string => `test/fixtures/suite/${name}.ts`

function startSuite(
  t: Test,
  names: string[],
  options: string[] = [],
  { env = {}, stderr = 'inherit' as 'inherit' | 'ignore' } = {},
) {
  const dir = createTempDir(t, 'suite')
  const files = { FAILED_MARKER: join(dir, 'failed'), PIDS_FILE: join(dir, 'pids') }
  const args = [
    'test/support/suite/run-suite.ts',
    `--state=${join(dir, 'state')}`,
    ...options,
    ...names.map(fixture),
  ]
  const child = spawn(process.execPath, args, {
    cwd: PROJECT_DIR,
    env: { ...process.env, ...files, ...env },
    stdio: ['ignore', 'pipe', stderr],
  })
  t.teardown(() => child.kill('SIGKILL'))
  return { child, output: text(child.stdout), exited: once(child, 'exit'), pidsFile: files.PIDS_FILE }
}

async function runSuite(t: Test, names: string[], options: string[] = [], env: NodeJS.ProcessEnv = {}) {
  const { output, exited, pidsFile } = startSuite(t, names, options, { env })
  const [status] = await exited
  return { output: await output, status, pidsFile }
}

const readPids = (path: string): string[] => readFileSync(path, 'utf8').split(' ')

/** The parent may not have read the exit status yet: a zombie does not run. */
const isRunning = (pid: string): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

t.test('passes when each file passes', async (t) => {
  const { output, status } = await runSuite(t, ['passes'])
  t.equal(status, 0, output)
  t.match(output, /^ok +\S+ s {2}test\/fixtures\/suite\/passes\.ts/m)
  t.match(output, /skipped tests:\n +1 {2}a program is not installed\n/)
  t.match(output, /assertions: 1 passed, 0 failed\n1 files in .*: 1 passed, 0 failed, 0 flaky, 0 not run\n$/)
})

t.test('a file that passes in its second run is flaky and does not fail the run', async (t) => {
  const { output, status } = await runSuite(t, ['fails-once', 'passes'])
  t.equal(status, 0, output)
  t.match(output, /^flaky: test\/fixtures\/suite\/fails-once\.ts\n +not ok 1 - was run before/m)
  t.match(output, /assertions: 2 passed, 0 failed\n2 files in .*: 2 passed, 0 failed, 1 flaky, 0 not run\n$/)
})

t.test('a file that fails twice fails the run, also one that crashes', async (t) => {
  const { output, status } = await runSuite(t, ['fails', 'crashes', 'exits-with-0', 'passes'])
  t.equal(status, 1, output)
  t.match(output, /^failed twice: test\/fixtures\/suite\/fails\.ts\n +not ok 2 - one is two/m)
  t.match(output, /^failed twice: test\/fixtures\/suite\/crashes\.ts\n[\s\S]*terminated by SIGKILL/m)
  t.match(
    output,
    /^failed twice: test\/fixtures\/suite\/exits-with-0\.ts\n[\s\S]*exited with 0 after 1 failed/m,
  )
  t.match(output, /assertions: 2 passed, 3 failed\n4 files in .*: 1 passed, 3 failed, 0 flaky, 0 not run\n$/)
})

t.test('a file that runs no test fails', async (t) => {
  const { output, status } = await runSuite(t, ['runs-no-test'])
  t.equal(status, 1, output)
  t.match(output, /^failed twice: test\/fixtures\/suite\/runs-no-test\.ts\n[\s\S]*ran no test/m)
})

t.test('a file that never ends fails, and its processes are terminated', async (t) => {
  const { output, status, pidsFile } = await runSuite(t, ['never-ends'], ['--timeout=5'], {
    [SLOWDOWN_VARIABLE]: '1',
  })
  t.equal(status, 1, output)
  t.match(output, /not ok 1 - never ends/)
  t.match(output, /timed out after 5 s/)
  t.match(output, /processes that the tests have left:\n +\d+ {2}sleep 600\n/)
  t.same(readPids(pidsFile).filter(isRunning), [])
})

t.test('a signal ends the run and all its processes', async (t) => {
  const { child, output, exited, pidsFile } = startSuite(t, ['never-ends', 'passes'])
  await waitUntil('the processes run', () => existsSync(pidsFile) && readPids(pidsFile).length === 2)
  const pids = readPids(pidsFile)
  t.same(pids.filter(isRunning), pids)
  child.kill('SIGINT')
  t.same(await exited, [130, null])
  t.match(await output, 'SIGINT: terminating')
  t.same(pids.filter(isRunning), [])
})

t.test('the TAP reporter prints the complete output of each file', async (t) => {
  const { output } = await runSuite(t, ['passes'], ['--reporter=tap'])
  t.match(output, /^# Subtest: test\/fixtures\/suite\/passes\.ts\n {4}TAP version 14\n {4}ok 1 - passes\n/m)
  t.match(output, /^ok 1 - test\/fixtures\/suite\/passes\.ts # time=\d+ms$/m)
})

t.test('hides optional programs', { skip: isRoot ? false : 'needs root' }, async (t) => {
  const { output, status } = await runSuite(t, ['finds-programs'], ['--without-programs'])
  t.equal(status, 0, output)
})

const skipMount = getOwnMountsPrefix().length === 0 && 'this user cannot create a mount namespace'

t.test('what a file mounts is not mounted on the machine', { skip: skipMount }, async (t) => {
  const dir = createTempDir(t, 'mounted')
  const { output, status } = await runSuite(t, ['mounts'], [], { MOUNT_DIR: dir })
  t.equal(status, 0, output)
  t.notMatch(readFileSync('/proc/self/mountinfo', 'utf8'), dir)
})

t.test('rejects options that would run nothing', async (t) => {
  for (const option of [
    '--jobs=0',
    '--jobs=x',
    '--part=shrot',
    '--reporter=line',
    '--minutes=0',
    '--timeout=',
  ]) {
    const { exited } = startSuite(t, ['passes'], [option], { stderr: 'ignore' })
    t.same(await exited, [1, null], option)
  }
})

t.test('a file for which the budget has no time is not run, and does not fail the run', async (t) => {
  const state = createTempDir(t, 'suite-state')
  const late = fixture('fails-once')
  writeFileSync(join(state, 'timings.json'), JSON.stringify({ [late]: 3600 }))
  const { output, status } = await runSuite(t, ['passes', 'fails-once'], ['--minutes=1', `--state=${state}`])
  t.equal(status, 0, output)
  t.match(output, /^ok .*passes\.ts/m)
  t.match(output, /\nnot run, because the budget of time was used: test\/fixtures\/suite\/fails-once\.ts\n/)
  t.match(output, /\n1 files in .*: 1 passed, 0 failed, 0 flaky, 1 not run\n$/)
})

t.test('each test file is in the short or long part, or a load or a check', async (t) => {
  const [short = [], long = [], load = []] = PARTS.map((part) => selectPart(PROJECT_DIR, part))
  const checks = globSync('test/*.test.ts', { cwd: PROJECT_DIR })
  const files = readdirSync(join(PROJECT_DIR, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !/(^|\/)(node_modules|fixtures)\//.test(file))
    .map((file) => join('test', file))
  t.same([...short, ...long.filter(isLong), ...load, ...checks].sort(), files.sort())
  t.same(listUnusedGlobs(PROJECT_DIR), [])
  t.notOk(isLong('test/agent/new.test.ts'), 'a new file is short')
  t.notOk(runsAlone('test/agent/new.test.ts'))
})

t.test('the long part has the short files that ask for optional programs', async (t) => {
  const short = selectPart(PROJECT_DIR, 'short')
  const both = selectPart(PROJECT_DIR, 'long').filter((file) => !isLong(file))
  t.ok(both.every((file) => short.includes(file)))
  t.ok(both.includes('test/coordinator/db/postgres.test.ts'))
  t.notOk(both.includes('test/shared/ids.test.ts'))
  t.notOk(both.includes('test/coordinator/http/errors.test.ts'))
})
