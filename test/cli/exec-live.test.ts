// box exec with live output and stdin: what appears when, byte for byte, and how the command is interrupted.
import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ATTACH_LIMITS } from '../../shared/attach-format.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { createRandom } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const { attached } = fake
const exec = (...args: string[]) => runBox(fake.url, ['exec', ...args])
const hasExited = () => attached.last.child.exitCode !== null || attached.last.child.signalCode !== null
const MiB = 1024 * 1024

/** Resolves when `stream` of the box command contains `text`. */
const waitForText = (child: ChildProcess, stream: 'stdout' | 'stderr', text: string) =>
  new Promise<void>((resolve) => {
    let output = ''
    child[stream]?.on('data', (chunk: Buffer) => {
      output += chunk
      if (output.includes(text)) resolve()
    })
  })

t.test('output appears before the command has exited', async (t) => {
  const marker = join(t.testdir({}), 'marker')
  const command = `echo first; while [ ! -e ${marker} ]; do sleep 0.01; done; echo second >&2`
  const result = await runBox(fake.url, ['exec', 'fig', '--', command], {
    onSpawn: (child) => void waitForText(child, 'stdout', 'first').then(() => writeFileSync(marker, '')),
  })
  t.same(result, { code: 0, stdout: 'first\n', stderr: 'second\n' })
})

t.test('stdin, stdout and stderr are exact, and end of file arrives', async (t) => {
  const stdin = createRandom(1).bytes(3 * MiB + 1)
  const { code, stdout, stderr } = await runBoxForBytes(
    fake.url,
    ['exec', 'fig', '--', 'cat >copy; cat copy; cat copy >&2; exit 3'],
    {
      stdin,
    },
  )
  t.equal(code, 3)
  t.ok(stdout.equals(stdin), 'stdout')
  t.ok(stderr.equals(stdin), 'stderr')
})

t.test('64 MiB through both directions, with a reader that stops', async (t) => {
  const stdin = createRandom(2).bytes(64 * MiB)
  let maxMemory = 0
  const result = await runBoxForBytes(fake.url, ['exec', 'fig', '--', 'cat'], {
    stdin,
    onSpawn(child) {
      child.stdout?.pause()
      const resume = async () => {
        await waitUntil('the output window is full', () => attached.all.length > 0 && isWindowFull())
        t.ok(attached.last.getStdinOffset() < 16 * MiB, 'back-pressure stops the input')
        child.stdout?.on('data', () => {
          maxMemory = readPeakMemory(child) ?? maxMemory
        })
        child.stdout?.resume()
      }
      resume().catch((error) => child.emit('error', error))
    },
  })
  t.equal(result.code, 0, result.stderr.toString())
  t.ok(result.stdout.equals(stdin))
  t.ok(maxMemory > 0 && maxMemory < 180 * MiB, `${Math.round(maxMemory / MiB)} MiB of memory`)
})

const isWindowFull = () => attached.last.getRetainedBytes() >= ATTACH_LIMITS.outputWindowBytes

function readPeakMemory({ pid }: ChildProcess): number | undefined {
  try {
    const kibibytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
  } catch {
    return undefined
  }
}

t.test('box exec ends when the command exits or closes its stdin, although stdin is open', async (t) => {
  t.match(await runBox(fake.url, ['exec', 'fig', '--', 'exit 4'], { stdin: null }), { code: 4 })
  const closesStdin = await runBox(fake.url, ['exec', 'fig', '--', 'exec <&-; echo closed; sleep 0.2'], {
    stdin: Buffer.alloc(8 * MiB),
  })
  t.match(closesStdin, { code: 0, stdout: 'closed\n' })
  t.match(await runBox(fake.url, ['exec', 'fig', '--', 'head -c 1'], { stdin: Buffer.alloc(8 * MiB, 'y') }), {
    code: 0,
    stdout: 'y',
  })
})

t.test('-n forwards no stdin', async (t) => {
  for (const option of ['-n', '--no-stdin'])
    t.match(await runBox(fake.url, ['exec', option, 'fig', '--', 'cat; echo end'], { stdin: 'lost' }), {
      code: 0,
      stdout: 'end\n',
    })
  t.notOk(attached.last.request.stdin)
})

t.test('Ctrl-C terminates the command, prints its remaining output, and exits with 130', async (t) => {
  const result = await runBox(
    fake.url,
    ['exec', 'fig', '--', 'trap "echo cleanup; exit 9" TERM; echo ready; while :; do sleep 0.05; done'],
    {
      onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGINT')),
    },
  )
  t.match(result, {
    code: 130,
    stdout: 'ready\ncleanup\n',
    stderr: /^box: interrupted; terminating the command on fig\..*Ctrl-\\/s,
  })
  t.ok(hasExited())
})

t.test('SIGTERM and SIGHUP terminate the command too', async (t) => {
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    const result = await runBox(fake.url, ['exec', 'fig', '--', 'echo ready; sleep 60'], {
      onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill(signal)),
    })
    t.match(result, { code })
    t.ok(hasExited())
  }
})

t.test('a second Ctrl-C exits immediately', async (t) => {
  const result = await runBox(fake.url, ['exec', 'fig', '--', 'trap "" TERM; echo ready; sleep 60'], {
    onSpawn(child) {
      void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGINT'))
      void waitForText(child, 'stderr', 'Ctrl-C again').then(() => child.kill('SIGINT'))
    },
  })
  t.match(result, { code: null, stdout: 'ready\n' })
  process.kill(-(attached.last.child.pid ?? 0), 'SIGKILL')
})

t.test('a failure to terminate the command is reported', async (t) => {
  fake.handleNext('DELETE /v1/box/fig/exec/', (response) => response.destroy())
  const result = await runBox(
    fake.url,
    ['exec', 'fig', '--disconnect-timeout', '7', '--', 'echo ready; sleep 60'],
    {
      onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGINT')),
    },
  )
  t.match(result, { code: 130, stderr: /The box terminates the command after 7 s\.\n$/ })
  t.equal(attached.last.request.disconnectTimeoutSeconds, 7)
  process.kill(-(attached.last.child.pid ?? 0), 'SIGKILL')
})

t.test('Ctrl-\\ detaches: the command continues', async (t) => {
  const marker = join(t.testdir({}), 'marker')
  const command = `echo ready; while [ ! -e ${marker} ]; do sleep 0.01; done`
  const result = await runBox(fake.url, ['exec', 'fig', '--', command], {
    stdin: null,
    onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGQUIT')),
  })
  const { id, isDetached } = attached.last
  t.match(result, { code: 0, stdout: 'ready\n' })
  t.equal(
    result.stderr,
    `box: detached; the command continues on fig.\nFollow it: box logs -f fig ${id}\nKill it:   box kill fig ${id}\n`,
  )
  t.ok(isDetached)
  t.notOk(hasExited())
  writeFileSync(marker, '')
  await waitUntil('the command exits by itself', hasExited)
  t.equal(attached.last.child.exitCode, 0)
})

t.test('a reader that closes stdout terminates the command: 141 and no message', async (t) => {
  const result = await runBox(fake.url, ['exec', 'fig', '--', 'yes'], {
    onSpawn: (child) => void waitForText(child, 'stdout', 'y').then(() => child.stdout?.destroy()),
  })
  t.match(result, { code: 141, stderr: '' })
  await waitUntil('the command is terminated', hasExited)
})

t.test('a paused terminal stops the command, and the client still responds to pings', async (t) => {
  const terminal = runBoxInPty(t, fake.url, 'box exec fig -- yes')
  await terminal.waitFor('y\r\ny')
  terminal.pause()
  await waitUntil('the output window is full', isWindowFull)
  let hasResponded = false
  const pong = attached.pingClients().then(() => {
    hasResponded = true
  })
  await waitUntil('the client responds to a ping', () => hasResponded)
  await pong
  terminal.resume()
  terminal.type('\x03')
  // The shell of the terminal gets SIGINT too.
  t.match(await terminal.waitForExit(), { signal: 2 })
  await waitUntil('the command is terminated', hasExited)
})

t.test('the box gets the timeouts, and the exit is confirmed', async (t) => {
  t.match(await exec('fig', '--timeout', '20', '--', 'true'), { code: 0 })
  t.match(attached.last.request, {
    timeoutSeconds: 20,
    disconnectTimeoutSeconds: 60,
    attached: true,
    stdin: true,
  })
  await waitUntil('the client has confirmed the exit', () => attached.last.messages.includes('exitReceived'))
  t.match(await exec('fig', '--disconnect-timeout', '0', '--', 'true'), { code: 125 })
})

t.test('four commands at the same time', async (t) => {
  const results = await Promise.all(
    Array.from({ length: 4 }, (_, index) =>
      runBox(fake.url, ['exec', 'fig', '--', 'cat; exit 5'], { stdin: `${index}` }),
    ),
  )
  t.same(
    results.map(({ code, stdout }) => [code, stdout]),
    results.map((_, index) => [5, String(index)]),
  )
})
