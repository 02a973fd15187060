// Measures the time from a key press to its echo in a terminal, against ssh through a reverse tunnel.
import { once } from 'node:events'
import { DEADLINE_MS } from '../test/support/wait-until.ts'
import { openAttachment } from './support/attachment.ts'
import type { Boxwood } from './support/boxwood.ts'
import type { SshBaseline } from './support/ssh.ts'
import { formatNumber, measureDuration, median, quantile } from './support/stats.ts'
import type { Table } from './support/table.ts'

const ROUNDS = 5
/** Keys per round. */
const KEYS = 400
const WARM_UP_KEYS = 100
/** Time before each key. */
const KEY_INTERVAL_MS = 5

/** Sends a byte and resolves when a byte arrives. */
type PressKey = () => Promise<void>
export type Echo = { name: string; pressKey: PressKey; close(): Promise<void> }

/** Writes its input back, byte by byte, without the echo of the terminal. Writes a byte when it is ready. */
export const ECHO_COMMAND = 'stty raw -echo; printf r; exec cat'

/** Starts a terminal session of the first box. */
export async function startSession({ box, send }: Boxwood, session: string, command: string): Promise<void> {
  const body = Buffer.from(JSON.stringify({ session, command }))
  const response = await send('POST', `/v1/box/${box.hostname}/terminal/sessions`, body, {
    'content-type': 'application/json',
  })
  await response.toArray()
}

export async function openBoxwoodEcho(boxwood: Boxwood): Promise<Echo> {
  await startSession(boxwood, 'echo', ECHO_COMMAND)
  const attachment = await openAttachment(boxwood, '/terminal?session=echo&create=never')
  await attachment.attached
  const pressKey = createKeyPress(attachment.onOutput, (bytes) => attachment.sendStdin(bytes))
  return {
    name: '`GET /terminal`',
    pressKey,
    async close() {
      attachment.close()
      await (await boxwood.send('DELETE', `/v1/box/${boxwood.box.hostname}/terminal/sessions/echo`)).toArray()
    },
  }
}

async function openSshEcho(ssh: SshBaseline): Promise<Echo> {
  const child = ssh.reverse.startTerminal(ECHO_COMMAND)
  const { stdin, stdout } = child
  await once(stdout, 'data')
  const pressKey = createKeyPress(
    (listener) => void stdout.on('data', listener),
    (bytes) => void stdin.write(bytes),
  )
  return {
    name: '`ssh -tt` through a tuned `ssh -R`',
    pressKey,
    async close() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}

function createKeyPress(onOutput: (listener: () => void) => void, send: (bytes: Buffer) => void): PressKey {
  let resolveEcho: () => void = () => undefined
  onOutput(() => resolveEcho())
  return () =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no echo within the deadline')), DEADLINE_MS)
      resolveEcho = () => {
        clearTimeout(timer)
        resolve()
      }
      send(Buffer.from('x'))
    })
}

export async function benchTerminal(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table> {
  const echoes = [await openBoxwoodEcho(boxwood), ...(ssh ? [await openSshEcho(ssh)] : [])]
  try {
    /** p50 and p99 of each round. */
    const results = echoes.map(() => ({ p50: [] as number[], p99: [] as number[] }))
    for (let round = 0; round < ROUNDS; round++) {
      const samples = echoes.map(() => [] as number[])
      for (let key = 0; key < WARM_UP_KEYS + KEYS; key++)
        for (const [index, { pressKey }] of echoes.entries()) {
          // The candidates take turns. Every process between the key and its echo sleeps before each key.
          await new Promise((resolve) => setTimeout(resolve, KEY_INTERVAL_MS))
          const ms = await measureDuration(pressKey)
          if (key >= WARM_UP_KEYS) samples[index]?.push(ms)
        }
      for (const [index, result] of results.entries()) {
        result.p50.push(median(samples[index] ?? []))
        result.p99.push(quantile(samples[index] ?? [], 0.99))
      }
    }
    const [base] = results
    return {
      title: 'From a key press to its echo in a terminal',
      columns: ['', 'p50 (ms)', 'p99 (ms)', 'p50 ÷ Boxwood', 'p99 ÷ Boxwood'],
      rows: echoes.map(({ name }, index) => {
        const p50 = median(results[index]?.p50 ?? [])
        const p99 = median(results[index]?.p99 ?? [])
        return [
          name,
          formatNumber(p50),
          formatNumber(p99),
          formatNumber(p50 / median(base?.p50 ?? [])),
          formatNumber(p99 / median(base?.p99 ?? [])),
        ]
      }),
    }
  } finally {
    for (const { close } of echoes) await close()
  }
}
