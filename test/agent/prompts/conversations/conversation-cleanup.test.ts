// Conversations beyond the limit are deleted with their runs, the least recently active ones first.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ConversationCleanup } from '../../../../agent/prompts/conversations/conversation-cleanup.ts'
import { openConversations } from '../../../../agent/prompts/conversations/conversations.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { createFakeRuns } from '../fake-runs.ts'

/** Each id is that of a conversation with one ended run, oldest first. */
function createCleanup(t: Test, ids: readonly string[], limit: number) {
  const fake = createFakeRuns()
  const conversationIds = ids.map((id) => `cv_${id.repeat(24)}`)
  for (const conversationId of conversationIds) fake.end(fake.addRun({ conversationId }).id)
  const path = join(createTempDir(t, 'conversations'), 'conversations.json')
  const conversations = openConversations(path, fake.runs, silentLog)
  const busy = new Set<string>()
  const cleanup = new ConversationCleanup({
    conversations,
    runs: fake.runs,
    isIdle: (id) => !busy.has(id),
    limit,
    log: silentLog,
  })
  const list = () => conversations.list().map(({ id }) => id.at(-1))
  return { fake, conversations, cleanup, busy, list, conversationIds, path }
}

t.test('the least recently active conversations beyond the limit', async (t) => {
  const { cleanup, list, fake, path } = createCleanup(t, ['a', 'b', 'c'], 2)
  await cleanup.cleanUpAndSave()
  await cleanup.settle()
  t.same(list(), ['c', 'b'])
  t.equal(fake.runs.list().length, 2, 'the run of the deleted conversation is deleted')
  const stored = openConversations(path, fake.runs, silentLog).list()
  t.same(
    stored.map(({ id }) => id.at(-1)),
    ['c', 'b'],
  )
})

t.test('not those with a run in progress or a queued prompt', async (t) => {
  const { cleanup, list, busy, conversationIds } = createCleanup(t, ['a', 'b', 'c'], 2)
  for (const id of conversationIds.slice(0, 1)) busy.add(id)
  await cleanup.cleanUpAndSave()
  t.same(list(), ['c', 'a'])
  for (const id of conversationIds) busy.add(id)
  await cleanup.cleanUpAndSave()
  t.same(list(), ['c', 'a'])
})

t.test('conversations that never had a run', async (t) => {
  const { cleanup, conversations, list } = createCleanup(t, ['a'], 10)
  conversations.add({ id: `cv_${'d'.repeat(24)}`, provider: 'claude', model: null, cwd: '~' }, 1)
  t.same(list(), ['a', 'd'])
  await cleanup.cleanUpAndSave()
  t.same(list(), ['a'])
})

t.test('a run that cannot be deleted does not stop the clean-up', async (t) => {
  const { cleanup, list, fake } = createCleanup(t, ['a', 'b', 'c'], 1)
  fake.runs.remove = () => Promise.reject(new Error('EIO'))
  await cleanup.cleanUpAndSave()
  await cleanup.settle()
  t.same(list(), ['c'])
})
