// The sessions in the team status: open connections to boxes. test/e2e/replicas runs it through two coordinators.
import t from 'tap'
import { WebSocket } from 'ws'
import { createCountSessions, type UserCounts } from '../../../coordinator/team/count-sessions.ts'
import { ApiError } from '../../../shared/errors.ts'
import { startBoxWithPrompts } from '../../e2e/prompt-stream-support.ts'
import { startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('counts terminals while they are open', async (t) => {
  const { promise: response, reject: failRequest } = Promise.withResolvers<never>()
  const { api, box, url, key } = await startBoxWithFakeAgent(t, () => response)
  const countSessions = async () => {
    const { boxes, members, totals } = (await api('GET', '/team/status')).json
    return [boxes[0].sessions, members[0].sessions, totals.sessions]
  }
  const address = `${url.replace('http', 'ws')}/v1/box/${box.id}/terminal`
  const socket = new WebSocket(address, { headers: { authorization: `Bearer ${key}` } })
  socket.on('error', () => undefined)
  await waitUntil('the terminal to be counted', async () => (await countSessions()).every((n) => n === 1))
  failRequest(new ApiError('exec_failed'))
  await waitUntil('the terminal to be closed', async () => (await countSessions()).every((n) => n === 0))
})

t.test('counts followed prompts', async (t) => {
  const { agent, api, followAll, waitForPolls } = await startBoxWithPrompts(t)
  const countSessions = async () => (await api('GET', '/team/status')).json.boxes[0].sessions
  const run = agent.addRun()
  const reader = await followAll()
  await waitForPolls(1)
  t.equal(await countSessions(), 1)
  agent.finish(run)
  await reader.ended
  await waitUntil('the stream to be closed', async () => (await countSessions()) === 0)
})

t.test('adds the sessions at other coordinators, without those that do not respond', async (t) => {
  const warnings: unknown[] = []
  const countSessions = createCountSessions({
    log: { warn: (fields: unknown) => void warnings.push(fields) } as never,
    countByUser: (boxId): UserCounts => new Map(boxId === 'box_1' ? [['usr_1', 1]] : []),
    peers: {
      handle: () => undefined,
      callAll: async (_operation, _input, { schema }) => [
        {
          status: 'fulfilled',
          value: schema.parse([
            [
              'box_1',
              [
                ['usr_1', 2],
                [null, 1],
              ],
            ],
            ['box_2', [['usr_2', 1]]],
          ]),
        },
        { status: 'rejected', reason: new Error('the other coordinator does not respond') },
      ],
    },
  })
  const counts = await countSessions(['box_1', 'box_2'])
  t.same(
    [...(counts.get('box_1') ?? [])],
    [
      ['usr_1', 3],
      [null, 1],
    ],
  )
  t.same([...(counts.get('box_2') ?? [])], [['usr_2', 1]])
  t.match(warnings, [{ err: { message: 'the other coordinator does not respond' } }])
})
