// Idempotent start requests: repeated, conflicting and failed ones, and those during close().
import t from 'tap'
import { digestOf } from '../../../../agent/exec/detached/start.ts'
import { StartRequests } from '../../../../agent/exec/detached/start-requests.ts'
import type { DetachedProcess } from '../../../../agent/exec/detached/types.ts'
import type { AgentStartRequest } from '../../../../shared/api/processes.ts'

const toRequest = (command: string): AgentStartRequest => ({ detached: true, processId: 'p1', command })
const toProcess = (processId: string) => ({ processId }) as DetachedProcess

/** Each start completes when the test settles it. */
function createStarts() {
  const started = new Map<string, { digest: string; detachedProcess: DetachedProcess }>()
  const pending: PromiseWithResolvers<DetachedProcess>[] = []
  const starts = new StartRequests({
    find: (processId) => started.get(processId),
    async start(request) {
      const start = Promise.withResolvers<DetachedProcess>()
      pending.push(start)
      const detachedProcess = await start.promise
      started.set(request.processId, { digest: digestOf(request), detachedProcess })
      return detachedProcess
    },
  })
  return { starts, pending }
}

t.test('a repeated request gets the same process, during and after the start', async (t) => {
  const { starts, pending } = createStarts()
  const first = starts.start(toRequest('date'))
  const second = starts.start(toRequest('date'))
  const process = toProcess('p1')
  pending[0]?.resolve(process)
  t.equal(await first, process)
  t.equal(await second, process)
  t.equal(await starts.start(toRequest('date')), process)
  t.equal(pending.length, 1)
})

t.test('rejects another command with the same id, during and after the start', async (t) => {
  const { starts, pending } = createStarts()
  const first = starts.start(toRequest('date'))
  await t.rejects(starts.start(toRequest('uptime')), { code: 'idempotency_key_reused' })
  pending[0]?.resolve(toProcess('p1'))
  await first
  await t.rejects(starts.start(toRequest('uptime')), { code: 'idempotency_key_reused' })
  t.equal(pending.length, 1)
})

t.test('a failed start can be repeated, and waitFor() does not reject', async (t) => {
  const { starts, pending } = createStarts()
  const first = starts.start(toRequest('date'))
  const waited = starts.waitFor('p1')
  pending[0]?.reject(new Error('no such directory'))
  await t.rejects(first, /no such directory/)
  await waited
  const second = starts.start(toRequest('uptime'))
  pending[1]?.resolve(toProcess('p1'))
  t.match(await second, { processId: 'p1' })
})

t.test('close() waits for the starts in progress and refuses further ones', async (t) => {
  const { starts, pending } = createStarts()
  const first = starts.start(toRequest('date'))
  let isClosed = false
  const closed = starts.close().then(() => {
    isClosed = true
  })
  await t.rejects(starts.start(toRequest('date')), { code: 'exec_failed' })
  t.notOk(isClosed)
  pending[0]?.resolve(toProcess('p1'))
  await Promise.all([first, closed])
})
