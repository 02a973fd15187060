// Runs in a process of their own, for tests that kill the agent. Started by runs-client.ts with an IPC channel.

import type { Reply, Request } from './runs-client.ts'
import { openRuns } from './support.ts'

const { runs, readPage } = await openRuns({ teardown: () => undefined }, process.env.HOME ?? '')

async function handle(request: Request): Promise<unknown> {
  switch (request.kind) {
    case 'start':
      return runs.start(request.options)
    case 'get':
      return runs.get(request.id) ?? null
    case 'read':
      return readPage(request.id, request.after, 100, 15_000)
    case 'interrupt':
      return runs.interrupt(request.id, 'Interrupted by a request.')
  }
}

const send = (reply: Reply) => process.send?.(reply)
process.on('message', (request: Request) => {
  handle(request).then(
    (value) => send({ number: request.number, value }),
    (error: unknown) => send({ number: request.number, error: String(error) }),
  )
})
send({ number: 0 })
