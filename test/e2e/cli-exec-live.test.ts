// box exec with a real coordinator and box: live output, stdin, connection failures, interruptions, parallel commands.

import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'
import t from 'tap'
import { type BoxOptions, runBoxForBytes } from '../cli/run-box.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'
import { createSeededRandom, randomBuffer } from '../support/random.ts'
import { waitUntil } from '../support/wait-until.ts'

const MiB = 1024 * 1024
const OUTAGE_MESSAGES =
  /box: (disconnected from the command\..*?Ctrl-C to stop\.|reconnected; the output continues where it stopped\.)\n/g

const {
  coordinator,
  clientProxy,
  agentProxy,
  box: firstBox,
  key,
  restart,
  // The defaults.
} = await startProxiedCoordinator(t, limitsEnv({}))
const name = firstBox.hostname
const boxForBytes = (args: string[], options: BoxOptions = {}) =>
  runBoxForBytes(clientProxy.url, args, { env: { BOXWOOD_API_KEY: key }, ...options })
const box = async (args: string[], options: BoxOptions = {}) => {
  const { code, stdout, stderr } = await boxForBytes(args, options)
  return { code, stdout: stdout.toString(), stderr: stderr.toString().replace(OUTAGE_MESSAGES, '') }
}
const exec = (command: string, options?: BoxOptions) => box(['exec', name, '--', command], options)

/** Calls `action` when stdout of the box command contains `text`. */
const onText = (text: string, action: (child: ChildProcess) => unknown): BoxOptions => ({
  stdin: null,
  onSpawn(child) {
    let output = ''
    const onData = (chunk: Buffer) => {
      output += chunk
      if (!output.includes(text)) return
      child.stdout?.off('data', onData)
      void action(child)
    }
    child.stdout?.on('data', onData)
  },
})

/** The newest record of a command that contains `text`. */
const getRecord = async (text: string) => {
  const { commands } = await coordinator.sendJson('GET', `/api/v1/boxes/${firstBox.id}/commands`)
  return commands.find(({ command }: { command: string }) => command.includes(text))
}

t.test('output appears before the command has exited, and the exit code is returned', async (t) => {
  const result = await exec('echo first; until test -e go; do sleep 0.05; done; echo second >&2; exit 7', {
    ...onText('first', () => coordinator.exec(name, 'touch go')),
  })
  t.same(result, { code: 7, stdout: 'first\n', stderr: 'second\n' })
  t.match(await getRecord('until test -e go'), { mode: 'sync', source: 'cli', exitCode: 7 })
})

t.test('binary data passes through stdin, stdout and stderr', async (t) => {
  const stdin = randomBuffer(8 * MiB + 5, createSeededRandom(1))
  const result = await boxForBytes(['exec', name, '--', 'cat >copy; cat copy; cat copy >&2'], { stdin })
  t.equal(result.code, 0)
  t.ok(result.stdout.equals(stdin), 'stdout')
  t.ok(result.stderr.equals(stdin), 'stderr')
})

t.test('box exec ends when the command exits, although stdin is open', async (t) => {
  t.match(await exec('head -c 2', { stdin: Buffer.alloc(16 * MiB, 'y') }), { code: 0, stdout: 'yy' })
  t.match(await exec('exit 3', { stdin: null }), { code: 3 })
})

t.test('no byte is lost over resets of client and tunnel, and a killed coordinator', async (t) => {
  const stdin = randomBuffer(48 * MiB, createSeededRandom(2))
  let received = 0
  const causeFailures = async () => {
    const waitForOutput = (bytes: number) => waitUntil(`${bytes} bytes of output`, () => received >= bytes)
    await waitForOutput(4 * MiB)
    clientProxy.reset()
    await waitForOutput(12 * MiB)
    agentProxy.reset()
    await waitForOutput(20 * MiB)
    await restart()
    await waitForOutput(28 * MiB)
    clientProxy.reset()
    agentProxy.reset()
  }
  let failures: Promise<void> = Promise.resolve()
  const result = await boxForBytes(['exec', name, '--', 'cat; exit 9'], {
    stdin,
    onSpawn(child) {
      child.stdout?.on('data', (chunk: Buffer) => {
        received += chunk.length
      })
      failures = causeFailures()
      failures.catch(() => child.kill())
    },
  })
  await failures
  t.equal(result.code, 9, result.stderr.toString())
  t.equal(result.stdout.length, stdin.length)
  t.ok(result.stdout.equals(stdin))
})

t.test('Ctrl-C terminates the command on the box', async (t) => {
  const command = 'trap "echo cleanup; exit 1" TERM; echo ready; while :; do sleep 0.05; done'
  const result = await exec(
    command,
    onText('ready', (child) => child.kill('SIGINT')),
  )
  t.match(result, { code: 130, stdout: 'ready\ncleanup\n', stderr: /^box: interrupted; terminating/ })
})

t.test('Ctrl-\\ detaches: the command continues, and box logs shows all output', async (t) => {
  const command = 'echo ready; until test -e detached; do sleep 0.05; done; echo end; exit 6'
  const result = await exec(
    command,
    onText('ready', (child) => child.kill('SIGQUIT')),
  )
  t.match(result, { code: 0, stdout: 'ready\n', stderr: /^box: detached; the command continues/ })
  const [, id = ''] = /box logs -f \S+ (p_\w+)/.exec(result.stderr) ?? []
  t.match((await box(['ps', name])).stdout, new RegExp(`^${id} .*running`, 'm'))
  t.match(await exec('touch detached'), { code: 0 })
  t.match(await box(['logs', '-f', name, id]), { code: 6, stdout: /end\n$/ })
})

t.test('a command whose client was killed is terminated after the disconnect timeout', async (t) => {
  const command = 'echo ready; sleep 1001'
  const args = ['exec', '--disconnect-timeout', '1', name, '--', command]
  const result = await boxForBytes(
    args,
    onText('ready', (child) => child.kill('SIGKILL')),
  )
  t.equal(result.code, null)
  const record = await waitUntil('the command is terminated', async () => {
    const record = await getRecord('sleep 1001')
    return record?.status === 'killed' && record
  })
  t.match(record, { mode: 'sync', signal: 'TERM' })
})

t.test('a reader that closes stdout terminates the command', async (t) => {
  const main = resolve(import.meta.dirname, '../../cli/main.ts')
  const child = spawn(
    'sh',
    ['-c', `"$0" "$1" exec "$2" -- yes 'no end' | head -n 1; echo`, process.execPath, main, name],
    {
      env: { ...process.env, BOXWOOD_URL: `${clientProxy.url}/api/v1`, BOXWOOD_API_KEY: key },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  t.equal(Buffer.concat(await child.stdout.toArray()).toString(), 'no end\n\n')
  await waitUntil('the command is terminated', async () => (await getRecord('no end'))?.status === 'killed')
})

t.test('ten commands of one key at the same time', async (t) => {
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, index) => exec('cat; sleep 0.2; exit 5', { stdin: `${index}` })),
  )
  t.same(
    results,
    results.map((_, index) => ({ code: 5, stdout: String(index), stderr: '' })),
  )
})

t.test('suspending the box ends box exec', async (t) => {
  const result = await exec(
    'echo ready; sleep 60',
    onText('ready', () => box(['suspend', name])),
  )
  // The exit may arrive before the box is stopped.
  t.ok([125, 143].includes(result.code ?? 0), `exit code ${result.code}: ${result.stderr}`)
})
