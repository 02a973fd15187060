// Lists and screens that are requested repeatedly, while the coordinator does not respond.
import t from 'tap'
import { poll } from '../../../cli/lists/poll.ts'

t.test('a slow request is reported once, and a later result ends the outage', async (t) => {
  const events: string[] = []
  const controller = new AbortController()
  let respond: (() => void) | undefined
  let requests = 0
  const polling = poll({
    signal: controller.signal,
    intervalMs: 1,
    slowMs: 10,
    request: async () => {
      requests += 1
      // The second and the fourth request are answered after the outage was reported.
      if (requests % 2 === 0) await new Promise<void>((resolve) => (respond = resolve))
      return requests
    },
    onResult(result) {
      events.push(`result ${result}`)
      if (result === 4) controller.abort(new Error('stopped'))
    },
    onOutage(reason) {
      events.push(reason)
      respond?.()
    },
  })
  await t.rejects(polling, { message: 'stopped' })
  const outage = 'The coordinator does not respond.'
  t.strictSame(events, ['result 1', outage, 'result 2', 'result 3', outage, 'result 4'])
})
