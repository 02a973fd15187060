// Signals to a real `npm start` reach the coordinator.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { isAlive } from '../../coordinator/providers/parts/proc.ts'
import { runBox } from '../cli/run-box.ts'
import { listBoxPids } from '../support/find-agent-process.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { readRunningCoordinator, stopDataDirectory } from '../support/stop-data-directory.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

/** In its own process group, like a job of a terminal. Stops the coordinator and its boxes after the test. */
async function startWithNpm(t: Test, cwd = PROJECT_DIR) {
  const dataDir = createTempDir(t, 'npm-start')
  const npm: ChildProcess = spawn('npm', ['--prefix', PROJECT_DIR, 'start'], {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      BOXWOOD_DATA: dataDir,
      BOXWOOD_LISTEN: '127.0.0.1:0',
      BOXWOOD_LOG: 'error',
      npm_config_loglevel: 'error',
      npm_config_update_notifier: 'false',
    },
  })
  let stdout = ''
  npm.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  const exited = once(npm, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  t.teardown(async () => {
    if (npm.exitCode === null && npm.signalCode === null) npm.kill('SIGKILL')
    await exited
    await stopDataDirectory(dataDir)
  })
  const coordinator = await waitUntil('the coordinator is ready', () => {
    if (npm.exitCode !== null) throw new Error(`npm exited with ${npm.exitCode}`)
    return readRunningCoordinator(dataDir)
  })
  const key = readFileSync(join(dataDir, 'owner.key'), 'utf8').trim()
  // biome-ignore lint/suspicious/noExplicitAny: the tests read a few fields.
  async function send(path: string, body?: object): Promise<any> {
    const response = await fetch(coordinator.url + path, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    return response.json()
  }
  const box = await waitUntil('the first box runs', async () => {
    const { boxes } = await send('/api/v1/boxes')
    return boxes[0].observedState === 'running' && boxes[0]
  })
  return {
    dataDir,
    npm,
    exited,
    coordinator,
    boxId: box.id as string,
    hostname: box.hostname as string,
    exec: (command: string) => send(`/v1/box/${box.id}/exec`, { command }),
    /** Like Ctrl-C in a terminal: npm forwards its own signal, so the coordinator receives two. */
    pressCtrlC: () => process.kill(-(npm.pid ?? Number.NaN), 'SIGINT'),
    getStdout: () => stdout,
  }
}

t.test('the printed command can be pasted, and SIGTERM to npm stops only the coordinator', async (t) => {
  const cwd = createTempDir(t, 'npm-start-cwd')
  const { npm, exited, coordinator, boxId, getStdout } = await startWithNpm(t, cwd)
  t.not(coordinator.pid, npm.pid)
  const banner = /In another terminal, in this directory:\n {2}(.*)\n/
  await waitUntil('the banner is printed', () => banner.test(getStdout()))
  t.match(getStdout(), /^Starting Boxwood\.\n/m, 'a line at once')
  const command = banner.exec(getStdout())?.[1] ?? ''
  t.match(command, / exec \w+ -- uname -a$/)
  const { BOXWOOD_URL: _, BOXWOOD_API_KEY: __, BOXWOOD_DATA: ___, ...env } = process.env
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd, env })
  t.match(stdout, /^Linux /)
  npm.kill('SIGTERM')
  t.same(await exited, [0, null])
  t.notOk(isAlive(coordinator), 'the coordinator has exited before npm')
  t.not(listBoxPids(boxId).length, 0, 'the box keeps running')
})

t.test('Ctrl-C stops the coordinator and the boxes', async (t) => {
  const { exited, coordinator, boxId, pressCtrlC, getStdout } = await startWithNpm(t)
  pressCtrlC()
  t.same(await exited, [0, null])
  t.notOk(isAlive(coordinator))
  t.same(listBoxPids(boxId), [])
  t.match(getStdout(), /Suspended: \w+/)
})

t.test('a second Ctrl-C exits immediately', async (t) => {
  const { dataDir, exited, coordinator, boxId, hostname, exec, pressCtrlC, getStdout } = await startWithNpm(t)
  // The box ignores SIGTERM, so stopping it takes the whole grace period.
  await exec(`setsid sh -c "trap '' TERM; echo ready >trapped; sleep 600" >/dev/null 2>&1 &`)
  await waitUntil('the box ignores SIGTERM', async () => (await exec('cat trapped')).exitCode === 0)
  pressCtrlC()
  await waitUntil('the coordinator stops', () => getStdout().includes('Press Ctrl-C again'))
  t.notMatch(getStdout(), 'Suspended:')
  // The first of these may be within the time of forwarded signals.
  const timer = setInterval(pressCtrlC, 200)
  const [code] = await exited.finally(() => clearInterval(timer))
  t.equal(code, 1)
  t.notOk(isAlive(coordinator))
  t.notMatch(getStdout(), 'Suspended:')
  t.not(listBoxPids(boxId).length, 0, 'the box was not stopped')
  t.match(await runBox(null, ['down'], { env: { BOXWOOD_DATA: dataDir } }), {
    code: 0,
    stdout: `Stopped boxes that ran without a coordinator: ${hostname}.\n`,
  })
  t.same(listBoxPids(boxId), [])
})
