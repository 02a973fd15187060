// The order, offsets and acknowledgements of received output.
import t from 'tap'
import type { OutputChannel } from '../../../client/attach/format.ts'
import type { ExitMessage } from '../../../client/attach/messages.ts'
import { OutputQueue } from '../../../client/attach/output-queue.ts'
import type { OutputSink } from '../../../client/attach/sink-writer.ts'
import { ATTACH_LIMITS } from '../../../shared/attach-format.ts'

/** A queue whose sink takes the next chunk when `release` is called. */
function createQueue({
  start = { stdout: 0, stderr: 0 } as { stdout: number; stderr: number } | null,
  isTerminal = false,
} = {}) {
  const events: string[] = []
  const waiting: (() => void)[] = []
  const sink: OutputSink = {
    write(channel, bytes) {
      events.push(bytes.length > 100 ? `${channel} ${bytes.length}` : `${channel} ${Buffer.from(bytes)}`)
      return new Promise((resolve) => waiting.push(resolve))
    },
    reportMissing: (channel, bytes) => void events.push(`missing ${channel} ${bytes}`),
    ...(isTerminal && {
      drawScreen: async (bytes: Uint8Array) => void events.push(`screen ${Buffer.from(bytes)}`),
    }),
  }
  const queue = new OutputQueue({
    start,
    sink,
    onAck: ({ stdout, stderr }) => void events.push(`ack ${stdout} ${stderr}`),
    onExit: ({ exitCode }) => void events.push(`exit ${exitCode}`),
    onError: (error) => void events.push(`error ${error}`),
  })
  return {
    events,
    queue,
    write: (channel: OutputChannel, bytes: string | Buffer) =>
      queue.push({ type: 'output', channel, bytes: new Uint8Array(Buffer.from(bytes as string)) }),
    async release() {
      // The queue continues in a later microtask.
      await new Promise((resolve) => setImmediate(resolve))
      waiting.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

const attached = (stdoutOffset: number, stderrOffset: number) =>
  ({ type: 'attached', stdinOffset: 0, stdoutOffset, stderrOffset }) as const
const exit = (stdoutOffset: number, stderrOffset: number): ExitMessage => ({
  type: 'exit',
  status: 'exited',
  exitCode: 3,
  signal: null,
  timedOut: false,
  stdoutOffset,
  stderrOffset,
})

t.test('passes on stdout and stderr in the order of arrival, and the exit at the end', async (t) => {
  const { queue, events, write, release } = createQueue()
  write('stdout', 'a')
  write('stderr', 'b')
  write('stdout', 'c')
  queue.push(exit(2, 1))
  t.ok(queue.isComplete)
  t.same(events, ['stdout a'])
  for (let i = 0; i < 3; i++) await release()
  t.same(events, ['stdout a', 'stderr b', 'stdout c', 'exit 3'])
})

t.test('joins small chunks while the sink is busy', async (t) => {
  const { events, write, release } = createQueue()
  for (const text of ['a', 'b', 'c', 'd']) write('stdout', text)
  await release()
  t.same(events, ['stdout a', 'stdout bcd'])
})

t.test('a new connection continues after the output that the sink has received', async (t) => {
  const { queue, events, write, release } = createQueue()
  write('stdout', 'abc')
  write('stderr', 'de')
  t.same(queue.startConnection(), { stdout: 3, stderr: 0 })
  queue.push(attached(3, 0))
  write('stderr', 'de')
  await release()
  t.same(events, ['stdout abc', 'stderr de'])
  t.throws(() => queue.push(attached(2, 0)), { message: /smaller than a previous one/ })
})

t.test('acknowledges what the sink has processed, and limits what waits for the sink', async (t) => {
  const { events, write, release } = createQueue()
  const half = Buffer.alloc(ATTACH_LIMITS.outputWindowBytes / 2)
  write('stdout', half)
  write('stderr', half)
  t.throws(() => write('stdout', 'a'), { message: /more output than was acknowledged/ })
  await release()
  t.ok(events.includes(`ack ${half.length} 0`))
  write('stdout', 'a')
})

t.test('reports output that the box has discarded', async (t) => {
  const { queue, events, write, release } = createQueue({ start: { stdout: 5, stderr: 0 } })
  queue.push(attached(7, 0))
  write('stdout', 'a')
  queue.push(exit(8, 4))
  await release()
  t.same(
    events.filter((event) => !event.startsWith('ack')),
    ['missing stdout 2', 'stdout a', 'missing stderr 4', 'exit 3'],
  )
})

t.test('a screen replaces the output that the sink has not received', async (t) => {
  const { queue, events, write, release } = createQueue({ start: null, isTerminal: true })
  t.equal(queue.startConnection(), null)
  queue.push(attached(0, 0))
  queue.push({ type: 'screen', bytes: 6, stdoutOffset: 100, stderrOffset: 0, cols: 80, rows: 24 })
  write('stdout', 'scr')
  t.equal(queue.startConnection(), null, 'a partial screen is not drawn')
  queue.push(attached(0, 0))
  queue.push({ type: 'screen', bytes: 6, stdoutOffset: 100, stderrOffset: 0, cols: 80, rows: 24 })
  write('stdout', 'scr')
  write('stdout', 'een+a')
  await release()
  write('stdout', 'b')
  await release()
  t.same(events, ['screen screen', 'ack 100 0', 'stdout +a', 'stdout b'])
  t.same(queue.startConnection(), { stdout: 103, stderr: 0 })

  // The output from 103 on is no longer stored.
  queue.push(attached(500, 0))
  t.equal(queue.startConnection(), null)
})
