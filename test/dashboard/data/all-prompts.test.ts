// The prompts of all boxes: order, boxes that do not answer, boxes that are not asked, and the filter.

import t from 'tap'
import { createError } from '../../../client/http/errors.ts'
import { loadAllPrompts, selectPrompts } from '../../../dashboard/data/all-prompts.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import type { PromptList, QueuedPrompt, Run } from '../../../shared/api/prompts.ts'

const createBox = (hostname: string, fields: Partial<Box> = {}) =>
  ({ id: `id-${hostname}`, hostname, observedState: 'running', desiredState: 'running', ...fields }) as Box
const at = (minute: number) => `2030-01-01T00:0${minute}:00.000Z`
const createRun = (id: string, minute: number) =>
  ({
    id,
    conversationId: `cv_${id}`,
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

t.test('asks the running boxes, and lists their prompts from the newest on', async (t) => {
  const lists: Record<string, PromptList> = {
    fig: createList([createRun('b', 3), createRun('a', 1)], [createQueued('c', 4)]),
    plum: createList([createRun('d', 2)]),
  }
  const asked: string[] = []
  const { prompts, unanswered, notRunning } = await loadAllPrompts(
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
    prompts.map(({ boxName, id, status }) => `${boxName} ${id} ${status}`),
    ['fig c queued', 'fig b done', 'plum d done', 'fig a done'],
  )
  t.same(unanswered, [{ boxName: 'kiwi', message: 'The agent is not connected.' }])
  t.same(notRunning, ['lime'])
  const select = (filter: string) => selectPrompts(prompts, filter).map(({ id }) => id)
  t.same(select('plum'), ['d'])
  t.same(select('FIG done'), ['b', 'a'])
  t.same(select('gpt-5 queued'), ['c'])
  t.same(select(''), ['c', 'b', 'd', 'a'])
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
