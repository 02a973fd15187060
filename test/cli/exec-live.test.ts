// box exec with live output and stdin: what appears when, byte for byte, and how the command is interrupted.
import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createRandom } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { api } = coordinator
const { id: boxId } = await coordinator.findBox('fig')
const exec = (...args: string[]) => runBox(coordinator, ['exec', ...args])
const waitForExit = () => coordinator.waitForCommand('fig', ({ status }) => status !== 'running')
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
  const command = `echo first; while [ ! -e ${marker} ]; do sleep 0.01; done; echo second >&2; exit 7`
  const result = await runBox(coordinator, ['exec', 'fig', '--', command], {
    onSpawn: (child) => void waitForText(child, 'stdout', 'first').then(() => writeFileSync(marker, '')),
  })
  t.same(result, { code: 7, stdout: 'first\n', stderr: 'second\n' })
  t.match(await waitForExit(), { mode: 'sync', source: 'cli', exitCode: 7 })
})

t.test('stdin, stdout and stderr are exact, and end of file arrives', async (t) => {
  const stdin = createRandom(1).bytes(3 * MiB + 1)
  const { code, stdout, stderr } = await runBoxForBytes(
    coordinator,
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
  const result = await runBoxForBytes(coordinator, ['exec', 'fig', '--', 'tee received'], {
    stdin,
    onSpawn(child) {
      child.stdout?.pause()
      const resume = async () => {
        let received = 0
        let unchanged = 0
        await waitUntil('back-pressure stops the input', async () => {
          const { size } = await stat(join(coordinator.getHome('fig'), 'received')).catch(() => ({ size: 0 }))
          unchanged = size > 0 && size === received ? unchanged + 1 : 0
          received = size
          return unchanged > 10
        })
        t.ok(received < 24 * MiB, `${received} bytes have arrived`)
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

function readPeakMemory({ pid }: ChildProcess): number | undefined {
  try {
    const kibibytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
  } catch {
    return undefined
  }
}

t.test('box exec ends when the command exits or closes its stdin, although stdin is open', async (t) => {
  t.match(await runBox(coordinator, ['exec', 'fig', '--', 'exit 4'], { stdin: null }), { code: 4 })
  const closesStdin = await runBox(coordinator, ['exec', 'fig', '--', 'exec <&-; echo closed; sleep 0.2'], {
    stdin: Buffer.alloc(8 * MiB),
  })
  t.match(closesStdin, { code: 0, stdout: 'closed\n' })
  t.match(
    await runBox(coordinator, ['exec', 'fig', '--', 'head -c 1'], { stdin: Buffer.alloc(8 * MiB, 'y') }),
    {
      code: 0,
      stdout: 'y',
    },
  )
})

t.test('-n forwards no stdin', async (t) => {
  for (const option of ['-n', '--no-stdin'])
    t.match(await runBox(coordinator, ['exec', option, 'fig', '--', 'cat; echo end'], { stdin: 'lost' }), {
      code: 0,
      stdout: 'end\n',
    })
})

t.test('Ctrl-C terminates the command, prints its remaining output, and exits with 130', async (t) => {
  const result = await runBox(
    coordinator,
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
  t.match(await waitForExit(), { mode: 'sync' })
})

t.test('SIGTERM and SIGHUP terminate the command too', async (t) => {
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    const result = await runBox(coordinator, ['exec', 'fig', '--', 'echo ready; sleep 60'], {
      onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill(signal)),
    })
    t.match(result, { code })
    t.match(await waitForExit(), { mode: 'sync' })
  }
})

t.test('a second Ctrl-C exits immediately', async (t) => {
  const result = await runBox(coordinator, ['exec', 'fig', '--', 'trap "" TERM; echo ready; sleep 60'], {
    onSpawn(child) {
      void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGINT'))
      void waitForText(child, 'stderr', 'Ctrl-C again').then(() => child.kill('SIGINT'))
    },
  })
  t.match(result, { code: null, stdout: 'ready\n' })
})

t.test('a failure to terminate the command is reported', async (t) => {
  coordinator.failNext('DELETE /v1/box/fig/exec/', (response) => response.destroy())
  const result = await runBox(
    coordinator,
    ['exec', 'fig', '--disconnect-timeout', '7', '--', 'echo ready; sleep 60'],
    {
      onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGINT')),
    },
  )
  t.match(result, { code: 130, stderr: /The box terminates the command after 7 s\.\n$/ })
})

t.test('Ctrl-\\ detaches: the command continues', async (t) => {
  const marker = join(t.testdir({}), 'marker')
  const command = `echo ready; while [ ! -e ${marker} ]; do sleep 0.01; done; echo end; exit 6`
  const result = await runBox(coordinator, ['exec', 'fig', '--', command], {
    stdin: null,
    onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGQUIT')),
  })
  const { id } = await coordinator.waitForCommand('fig', ({ status }) => status === 'running')
  t.match(result, { code: 0, stdout: 'ready\n' })
  t.equal(
    result.stderr,
    `box: detached; the command continues on fig.\nFollow it: box logs -f fig ${id}\nKill it:   box kill fig ${id}\n`,
  )
  t.match((await runBox(coordinator, ['ps', 'fig'])).stdout, new RegExp(`^${id} .*running`, 'm'))
  writeFileSync(marker, '')
  t.match(await waitForExit(), { id, exitCode: 6 }, 'the command exits by itself')
  t.match(await runBox(coordinator, ['logs', '-f', 'fig', id]), { code: 6, stdout: 'ready\nend\n' })
})

t.test('a reader that closes stdout terminates the command: 141 and no message', async (t) => {
  const result = await runBox(coordinator, ['exec', 'fig', '--', 'yes'], {
    onSpawn: (child) => void waitForText(child, 'stdout', 'y').then(() => child.stdout?.destroy()),
  })
  t.match(result, { code: 141, stderr: '' })
  t.match(await waitForExit(), { signal: 'TERM' })
})

t.test('Ctrl-C terminates the command also while the terminal is paused', async (t) => {
  const terminal = runBoxInPty(t, coordinator, 'box exec fig -- yes')
  await terminal.waitFor('y\r\ny')
  terminal.pause()
  let previous = 0
  await waitUntil('the output stops', async () => {
    const { stdoutBytes } = (await api('GET', `/boxes/${boxId}/commands?limit=1`)).json.commands[0]
    const isStopped = stdoutBytes > 0 && stdoutBytes === previous
    previous = stdoutBytes
    return isStopped
  })
  terminal.resume()
  terminal.type('\x03')
  // The shell of the terminal gets SIGINT too.
  t.match(await terminal.waitForExit(), { signal: 2 })
  t.match(await waitForExit(), { signal: 'TERM' })
})

t.test('refuses a disconnect timeout of 0', async (t) => {
  t.match(await exec('fig', '--disconnect-timeout', '0', '--', 'true'), { code: 125 })
})

t.test('a command whose client was killed is terminated after the disconnect timeout', async (t) => {
  const result = await runBox(
    coordinator,
    ['exec', '--disconnect-timeout', '1', 'fig', '--', 'echo ready; sleep 60'],
    {
      stdin: null,
      onSpawn: (child) => void waitForText(child, 'stdout', 'ready').then(() => child.kill('SIGKILL')),
    },
  )
  t.match(result, { code: null, stdout: 'ready\n' })
  t.match(await waitForExit(), { mode: 'sync', status: 'killed', signal: 'TERM' })
})

t.test('suspending the box ends box exec', async (t) => {
  const { code, stderr } = await runBox(coordinator, ['exec', 'fig', '--', 'echo ready; sleep 60'], {
    stdin: null,
    onSpawn: (child) =>
      void waitForText(child, 'stdout', 'ready').then(() => api('POST', `/boxes/${boxId}/suspend`)),
  })
  // The exit may arrive before the box is stopped.
  t.ok([125, 143].includes(code ?? 0), `exit code ${code}: ${stderr}`)
})
