// box up, status and down with a real coordinator and box.

import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isAlive, readStat } from '../../coordinator/providers/parts/proc.ts'
import { VERSION } from '../../shared/version.ts'
import { listBoxPids } from '../support/find-agent-process.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { readRunningCoordinator } from '../support/stop-data-directory.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createDataDir } from './up-down-support.ts'

const FULL_LOG_BYTES = 10 * 1024 * 1024

t.test('up, status and down', async (t) => {
  const { dataDir, box } = createDataDir(t)
  const readBox = async () => JSON.parse((await box(['ls', '--json'])).stdout).boxes[0]
  const waitUntilBoxRuns = () =>
    waitUntil('the box runs', async () => {
      const first = await readBox()
      return first.observedState === 'running' && first
    })

  t.match(await box(['status']), { code: 3, stdout: /not running/ })
  const log = join(dataDir, 'coordinator.log')
  writeFileSync(log, 'x'.repeat(FULL_LOG_BYTES))
  const started = await box(['up'])
  t.match(started, { code: 0, stderr: '' })
  const coordinator = readRunningCoordinator(dataDir)
  if (coordinator === null) throw new Error('the coordinator is not running')
  const { pid, url } = coordinator
  t.match(started.stdout, `Boxwood runs in the background at ${url} (pid ${pid}).`)
  t.match(started.stdout, join(dataDir, 'owner.key'))
  const { id, hostname } = await waitUntilBoxRuns()
  t.match(started.stdout, `BOXWOOD_DATA=${dataDir} box exec ${hostname} -- uname -a`)
  t.equal(getSession(pid), pid, 'the coordinator has a session of its own')
  t.match(readFileSync(log, 'utf8'), `Boxwood listens on ${url}`)
  t.ok(statSync(log).size < FULL_LOG_BYTES, 'the log is rotated')
  t.ok(statSync(`${log}.1`).size >= FULL_LOG_BYTES)

  t.match(await box(['up']), {
    code: 0,
    stdout: `The coordinator is already running at ${url} (pid ${pid}).\n`,
  })
  const status = await box(['status', '--json'])
  t.equal(status.code, 0)
  t.match(JSON.parse(status.stdout), {
    running: true,
    state: 'ready',
    pid,
    url,
    coordinatorVersion: VERSION,
    cliVersion: VERSION,
    dataDirectory: dataDir,
    boxes: { running: 1 },
  })

  await t.test('upgrade restarts only the coordinator, at its address', async (t) => {
    const started = await box(['exec', '-d', hostname, '--', 'while :; do sleep 1; done'])
    const processId = /p_[0-9a-f]+/.exec(started.stdout)?.[0] ?? ''
    const upgraded = await box(['upgrade'])
    t.match(upgraded, { code: 0, stderr: 'Restarting the coordinator. The boxes keep running.\n' })
    const next = readRunningCoordinator(dataDir)
    t.not(next?.pid, pid)
    t.equal(next?.url, url)
    t.equal(
      upgraded.stdout,
      `Boxwood runs in the background at ${url} (pid ${next?.pid}), version ${VERSION}.\n`,
    )
    const { processes } = JSON.parse((await box(['ps', hostname, '--json'])).stdout)
    t.match(processes, [{ processId, running: true }])
  })

  await t.test('backup writes a file', async (t) => {
    const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
    const written = await box(['backup', '--without-boxes', file])
    t.match(written, { code: 0, stderr: '' })
    t.match(written.stdout, `Wrote ${file}`)
    t.match(written.stdout, `Restore it with \`${join(PROJECT_DIR, 'boxwood')} restore FILE\`.\n`)
    t.ok(statSync(file).size > 0)
    t.match(await box(['backup', '--without-boxes', file]), { code: 1, stderr: /^boxwood: .*exists/ })
  })

  t.match(await box(['down']), { code: 0, stdout: /are stopped/ })
  t.notOk(isAlive(coordinator))
  t.match(await box(['upgrade']), {
    code: 1,
    stderr: /The coordinator is not running\. `\S*box up` starts it/,
  })
  t.same(listBoxPids(id), [])
  t.match(await box(['status']), { code: 3 })
  t.match(await box(['down']), {
    code: 0,
    stdout: `Nothing was running with the data directory ${dataDir}.\n`,
  })

  await t.test('down stops boxes that run without a coordinator', async (t) => {
    const { pid: nextPid } = JSON.parse((await box(['up', '--json'])).stdout)
    t.equal((await waitUntilBoxRuns()).id, id, 'up wakes the box')
    const next = readRunningCoordinator(dataDir)
    t.equal(next?.pid, nextPid)
    process.kill(nextPid, 'SIGTERM')
    await waitUntil('the coordinator has exited', () => readStat(nextPid) === null)
    t.not(listBoxPids(id).length, 0)
    t.match(await box(['status']), { code: 3, stdout: /box down/ })
    t.match(await box(['down']), {
      code: 0,
      stdout: `Stopped boxes that ran without a coordinator: ${hostname}.\n`,
    })
    t.same(listBoxPids(id), [])
  })
})

t.test('a start without an address uses that of the last start', async (t) => {
  const { dataDir, box } = createDataDir(t)
  const env = { BOXWOOD_LISTEN: '' }
  const readHost = async () => new URL(JSON.parse((await box(['status', '--json'], env)).stdout).url).hostname
  t.match(await box(['up', '--listen', '127.0.0.2:0'], env), { code: 0, stdout: /at http:\/\/127\.0\.0\.2:/ })
  t.match(await box(['up', '--listen', '127.0.0.3:0'], env), {
    code: 0,
    stderr: /--listen applies to a start/,
  })
  t.match(await box(['up'], { ...env, BOXWOOD_REGIONS: 'us-west-2=local' }), {
    code: 0,
    stdout: /already running/,
    stderr: /BOXWOOD_REGIONS applies to a start.*box down/,
  })
  await box(['down'], env)
  t.match(await box(['up'], env), { code: 0 })
  t.equal(await readHost(), '127.0.0.2')
  const log = readFileSync(join(dataDir, 'coordinator.log'), 'utf8')
  t.match(log, /This is the address of the last start with BOXWOOD_LISTEN \(\S+settings\.json\)\./)
  await box(['down'], env)
  t.match(await box(['up'], { BOXWOOD_LISTEN: '127.0.0.1:0' }), { code: 0 })
  t.equal(await readHost(), '127.0.0.1', 'the variable wins')
})

/** Field 6 of /proc/PID/stat. */
function getSession(pid: number): number {
  const line = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[3])
}
