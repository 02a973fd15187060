// The conversations of all boxes: order, boxes that do not answer, boxes that are not asked, and the filter.

import t from 'tap'
import { createError } from '../../../client/http/errors.ts'
import { loadAllPrompts, selectConversations } from '../../../dashboard/data/all-prompts.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import type { PromptList, QueuedPrompt, Run } from '../../../shared/api/prompts.ts'

const createBox = (hostname: string, fields: Partial<Box> = {}) =>
  ({ id: `id-${hostname}`, hostname, observedState: 'running', desiredState: 'running', ...fields }) as Box
const at = (minute: number) => `2030-01-01T00:0${minute}:00.000Z`
const createRun = (id: string, minute: number, conversationId = `cv_${id}`) =>
  ({
    id,
    conversationId,
    provider: 'claude',
    model: null,
    status: 'done',
    startedAt: at(minute),
    prompt: `fix ${id}`,
  }) as Run
const createQueued = (id: string, minute: number) =>
  ({
    id,
    conversationId: `cv_${id}`,
    provider: 'codex',
    model: 'gpt-5',
    queuedAt: at(minute),
    prompt: 'later',
  }) as QueuedPrompt
const createList = (runs: Run[], queued: QueuedPrompt[] = []) =>
  ({ runs, queued, active: null }) as unknown as PromptList

t.test('asks the running boxes, and lists their conversations from the newest on', async (t) => {
  const lists: Record<string, PromptList> = {
    fig: createList(
      [{ ...createRun('b', 3), status: 'running' }, createRun('a', 1), createRun('first', 0, 'cv_b')],
      [createQueued('c', 4)],
    ),
    plum: createList([createRun('d', 2)]),
  }
  const asked: string[] = []
  const { conversations, unanswered, notRunning } = await loadAllPrompts(
    [
      createBox('fig'),
      createBox('plum'),
      createBox('lime', { observedState: 'suspended', desiredState: 'suspended' }),
      createBox('kiwi'),
      createBox('gone', { observedState: 'terminating', desiredState: 'terminated' }),
    ],
    async ({ hostname }) => {
      asked.push(hostname)
      const list = lists[hostname]
      if (list === undefined)
        throw createError({ code: 'box_unreachable', message: 'The agent is not connected.', status: 503 })
      return list
    },
  )
  t.same(asked, ['fig', 'plum', 'kiwi'])
  t.same(
    conversations.map(({ boxName, id, status, queued }) => `${boxName} ${id} ${status} ${queued}`),
    ['fig cv_c queued 1', 'fig cv_b running 0', 'plum cv_d done 0', 'fig cv_a done 0'],
  )
  t.same(
    conversations.map(({ runningId }) => runningId),
    [null, 'b', null, null],
    'only a run in progress can be stopped',
  )
  t.same(conversations[1]?.prompts, ['fix b', 'fix first'])
  t.same(unanswered, [{ boxName: 'kiwi', message: 'The agent is not connected.' }])
  t.same(notRunning, ['lime'])
  const select = (filter: string) => selectConversations(conversations, filter).map(({ id }) => id)
  t.same(select('plum'), ['cv_d'])
  t.same(select('FIG done'), ['cv_a'])
  t.same(select('gpt-5 queued'), ['cv_c'])
  t.same(select('fix first'), ['cv_b'])
  t.same(select(''), ['cv_c', 'cv_b', 'cv_d', 'cv_a'])
})

t.test('asks a bounded number of boxes at the same time', async (t) => {
  let [current, most] = [0, 0]
  await loadAllPrompts(
    Array.from({ length: 20 }, (_, number) => createBox(`box-${number}`)),
    async () => {
      current += 1
      most = Math.max(most, current)
      await new Promise((resolve) => setImmediate(resolve))
      current -= 1
      return createList([])
    },
  )
  t.equal(most, 3)
})
