// Following without the command around it: a connection that is dead without a word.
import t from 'tap'
import { createClient } from '../../cli/client.ts'
import { readOutput } from '../../cli/follow/output.ts'
import { KEY, startFakeCoordinator } from './fake-coordinator.ts'
import { fakeProcesses } from './fake-processes.ts'

t.test('a connection on which nothing comes any more is opened anew', async (t) => {
  const fake = await startFakeCoordinator(t)
  await fake.addBox('fig')
  const processes = fakeProcesses(fake)
  const place = { baseUrl: `${fake.url}/api/v1`, key: KEY, urlFrom: '', keyFrom: '' }
  const { signal } = new AbortController()
  const edge = await createClient(place, signal).edge('fig')
  const process = processes.add({ stdout: Buffer.from('first'), end: null })
  const chunks: Buffer[] = []
  const exit = await readOutput({
    edge,
    processId: process.id,
    signal,
    silenceMs: 300,
    from: { stdout: 0, stderr: 0 },
    onLong: () => undefined,
    onAgain: () => undefined,
    onLost: () => t.fail('nothing is lost'),
    async onChunk({ bytes }) {
      chunks.push(bytes)
      // The connection that is open hears nothing of it.
      process.stdout = Buffer.from('first, last')
      process.end = { status: 'exited', exitCode: 9, signal: null }
    },
  })
  t.equal(Buffer.concat(chunks).toString(), 'first, last')
  t.match(exit, { exitCode: 9 })
  t.ok(process.connections > 1)
})
