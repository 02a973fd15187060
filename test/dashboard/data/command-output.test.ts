// The page of a command: stored output, a stream that is resumed by offset, and the lists of commands.

import t from 'tap'
import { BoxwoodError, createError } from '../../../client/http/errors.ts'
import {
  appendOlder,
  filterCommands,
  formatDuration,
  formatResult,
  mergeNewest,
} from '../../../dashboard/data/command-list.ts'
import { CommandOutputLoader } from '../../../dashboard/data/command-output.ts'
import type { Command } from '../../../shared/api/commands.ts'

const TEXT = 'one\ntwo\nthree\n'

const createCommand = (fields: Partial<Command> = {}) =>
  ({
    id: 'p_1',
    mode: 'detached',
    status: 'running',
    command: 'make',
    exitCode: null,
    signal: null,
    startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt: null,
    ...fields,
  }) as Command

const formatEvents = (events: [event: string, data: object][]) =>
  events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join('')

const respond = (events: [event: string, data: object][]) =>
  new Response(formatEvents(events), { headers: { 'content-type': 'text/event-stream' } })

const EXIT: [string, object] = ['exit', { status: 'exited', exitCode: 0, stdoutOffset: 14, stderrOffset: 0 }]

const output = (from: number, to: number): [string, object] => [
  'stdout',
  { data: btoa(TEXT.slice(from, to)), offset: from, nextOffset: to },
]

/** @param streams the responses to the requests for the stream */
function createFixture(streams: ((() => Response) | BoxwoodError)[], command = createCommand()) {
  let stored = 4
  /** Called at each wait. */
  const waits: (() => void)[] = []
  const requests: string[] = []
  const errors: (string | undefined)[] = []
  /** False: other tabs have all streams. */
  const slots: boolean[] = []
  const released: boolean[] = []
  const loader = new CommandOutputLoader({
    boxId: 'b',
    commandId: command.id,
    isBoxRunning: () => true,
    onChange: () => errors.push(loader.error?.code),
    acquireStream: async () => (slots.shift() === false ? null : () => released.push(true)),
    wait: async () => waits.shift()?.(),
    client: {
      loadCommand: async () => ({ command: { ...command } }),
      async loadCommandOutput(_box, _id, { stream = 'stdout', offset = 0 }) {
        requests.push(`${stream} ${offset}`)
        const end = stream === 'stdout' ? Math.max(stored, offset) : 0
        const data = stream === 'stdout' ? TEXT.slice(offset, end) : ''
        return {
          stream,
          data,
          offset,
          nextOffset: end,
          size: end,
          skipped: 0,
          encoding: 'utf8',
          status: command.status,
          done: command.status !== 'running',
        }
      },
    },
    boxClient: {
      send: async <Result>() => ({ processes: [{ processId: command.id, running: true }] }) as Result,
      async open(path) {
        requests.push(path)
        const next = streams.shift()
        if (next === undefined)
          throw createError({ code: 'not_found', message: 'No such process.', status: 404 })
        if (next instanceof BoxwoodError) throw next
        return Object.assign(next(), { cancel: () => undefined })
      },
    },
  })
  const finish = () => {
    stored = TEXT.length
    Object.assign(command, { status: 'exited', exitCode: 0, finishedAt: '2026-01-01T00:00:05.000Z' })
  }
  const read = () =>
    loader.streams.stdout.lines.map(({ segments }) => segments.map(({ text }) => text).join(''))
  return { loader, requests, errors, finish, read, waits, slots, released }
}

t.test(
  'a running command: each byte once, over a cut stream and a coordinator that does not respond',
  async (t) => {
    const fixture = createFixture([
      () => respond([['attached', {}], output(4, 6)]),
      createError({ code: 'no_response', message: 'None.', status: 0 }),
      () => {
        fixture.finish()
        return respond([['attached', {}], output(6, 14), EXIT])
      },
    ])
    await fixture.loader.run(new AbortController().signal)
    t.same(fixture.read(), ['one', 'two', 'three'])
    t.same(
      fixture.requests.filter((request) => request.startsWith('exec')),
      [4, 6, 6].map((offset) => `exec/p_1/stream?stdoutOffset=${offset}&stderrOffset=0&encoding=base64`),
    )
    t.ok(fixture.errors.includes('no_response'), 'a lost connection is shown')
    t.equal(fixture.loader.error, null)
    t.equal(fixture.loader.command?.status, 'exited')
    t.notOk(fixture.loader.canStop)
  },
)

t.test(
  'a synchronous command has no stream, and a stream that is refused is read from the history',
  async (t) => {
    for (const mode of ['sync', 'detached'] as const) {
      const fixture = createFixture([], createCommand({ mode }))
      fixture.waits.push(fixture.finish)
      await fixture.loader.run(new AbortController().signal)
      t.same(fixture.read(), ['one', 'two', 'three'], mode)
      t.equal(fixture.loader.error, null)
      t.equal(
        fixture.requests.some((request) => request.startsWith('exec')),
        mode === 'detached',
      )
    }
  },
)

t.test('while other tabs have all streams, the output is read from the history', async (t) => {
  const fixture = createFixture([
    () => {
      fixture.finish()
      return respond([['attached', {}], output(4, 14), EXIT])
    },
  ])
  fixture.slots.push(false, false)
  await fixture.loader.run(new AbortController().signal)
  t.same(fixture.read(), ['one', 'two', 'three'])
  t.equal(fixture.requests.filter((request) => request.startsWith('exec')).length, 1)
  t.same(fixture.released, [true])
})

t.test('the list: pages, filter, results and durations', async (t) => {
  const commands = [5, 4, 3, 2, 1].map((number) =>
    createCommand({ id: `p_${number}`, startedAt: `2026-01-01T00:00:0${number}.000Z` }),
  )
  const ids = (list: readonly Command[]) => list.map(({ id }) => id).join(' ')
  t.equal(
    ids(mergeNewest(commands.slice(1), { commands: commands.slice(0, 2), nextBefore: 'x' })),
    'p_5 p_4 p_3 p_2 p_1',
  )
  t.equal(ids(mergeNewest(commands, { commands: commands.slice(0, 2), nextBefore: null })), 'p_5 p_4')
  t.equal(ids(mergeNewest([], { commands, nextBefore: 'x' })), 'p_5 p_4 p_3 p_2 p_1')
  t.equal(ids(appendOlder(commands.slice(0, 3), commands.slice(2))), 'p_5 p_4 p_3 p_2 p_1')
  t.equal(filterCommands([createCommand({ command: 'Make all' })], 'ALL make').length, 1)
  t.equal(filterCommands([createCommand({ command: null })], 'make').length, 0)
  t.equal(formatResult(createCommand({ status: 'killed', signal: 'TERM' })), 'killed by TERM')
  t.equal(formatResult(createCommand({ status: 'exited', exitCode: 3 })), 'exited with 3')
  const start = Date.parse('2026-01-01T00:00:00.000Z')
  const ends = [-5, 999, 59_900, 61_000, 3_660_000, 90_000_000]
  t.same(
    ends.map((ms) =>
      formatDuration(
        createCommand({ status: 'exited', finishedAt: new Date(start + ms).toISOString() }),
        start,
      ),
    ),
    ['0 ms', '999 ms', '59.9 s', '1 min 1 s', '1 h 1 min', '1 d 1 h'],
  )
  t.equal(formatDuration(createCommand(), start + 59_900), '59 s', 'a running command')
  t.equal(formatDuration(createCommand({ status: 'lost' }), start), 'unknown')
})
