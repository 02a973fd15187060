// Reading the output of a process when a connection is half-open.
import t from 'tap'
import { createClient } from '../../../cli/connection/client.ts'
import { readOutput } from '../../../cli/follow/read-output.ts'
import { KEY, startFakeCoordinator } from '../fake-coordinator.ts'
import { addFakeProcesses } from '../fake-processes.ts'

t.test('reconnects when a connection is open but delivers nothing', async (t) => {
  const fake = await startFakeCoordinator(t)
  await fake.addBox('fig')
  const processes = addFakeProcesses(fake)
  const config = { baseUrl: `${fake.url}/api/v1`, key: KEY, urlSource: '', keySource: '' }
  const { signal } = new AbortController()
  const edge = await createClient(config, signal).createEdgeClient('fig')
  const process = processes.add({ stdout: Buffer.from('first'), exit: null })
  const chunks: Buffer[] = []
  const exit = await readOutput({
    edge,
    processId: process.id,
    signal,
    idleTimeoutMs: 300,
    from: { stdout: 0, stderr: 0 },
    onOutage: () => undefined,
    onReconnect: () => undefined,
    onMissing: () => t.fail('no output is missing'),
    async onChunk({ bytes }) {
      chunks.push(bytes)
      // The open connection does not send these changes, only a new one does.
      process.stdout = Buffer.from('first, last')
      process.exit = { status: 'exited', exitCode: 9, signal: null }
    },
  })
  t.equal(Buffer.concat(chunks).toString(), 'first, last')
  t.match(exit, { exitCode: 9 })
  t.ok(process.connections > 1)
})
