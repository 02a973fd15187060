// An attachment over connections that are silent or never open.
import t from 'tap'
import { openSocket } from '../../../cli/attach/open-socket.ts'
import { createApiRequests } from '../../../cli/connection/api-requests.ts'
import { type AttachmentOptions, attach } from '../../../client/attach/attachment.ts'
import type { OutputSink } from '../../../client/attach/sink-writer.ts'
import { type AttachFault, setAttachFaults } from '../../cli/attach-faults.ts'
import { startCliCoordinator } from '../../cli/coordinator.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { edge, key, url } = coordinator

async function start(command: string, fault: AttachFault, options: Partial<AttachmentOptions> = {}) {
  const { countConnections } = setAttachFaults(coordinator, [fault])
  const { json } = await edge('fig', 'POST', '/exec', { command, attached: true, stdin: true })
  const processId: string = json.processId
  let output = ''
  const sink: OutputSink = {
    async write(_, bytes) {
      output += Buffer.from(bytes).toString()
    },
    reportMissing: () => undefined,
  }
  const controller = new AbortController()
  const attachment = attach({
    connect: (position, handlers, signal) =>
      openSocket(
        createApiRequests({ baseUrl: url, key, urlSource: '', keySource: '' }, { signal }).connect(
          `/v1/box/fig/exec/${processId}/attach?stdoutOffset=${position?.stdout}&stderrOffset=${position?.stderr}`,
        ),
        handlers,
      ),
    start: { stdout: 0, stderr: 0 },
    sink,
    signal: controller.signal,
    ...options,
  })
  return { attachment, controller, processId, countConnections, getOutput: () => output }
}

t.test('reconnects when the server is silent', async (t) => {
  const silent: AttachFault = { kind: 'script', run: () => undefined }
  const { attachment, countConnections, getOutput } = await start('cat', silent, { idleTimeoutMs: 200 })
  await attachment.writeStdin(Buffer.from('typed\n'))
  attachment.endStdin()
  t.match(await attachment.result, { exitCode: 0 })
  t.equal(getOutput(), 'typed\n')
  t.equal(countConnections(), 2)
})

t.test('pings keep a connection without data open', async (t) => {
  let timer: NodeJS.Timeout | undefined
  const pinging: AttachFault = {
    kind: 'script',
    run(ws) {
      let pings = 0
      timer = setInterval(() => {
        if (++pings < 20) return ws.ping()
        ws.send(JSON.stringify({ type: 'attached', stdinOffset: 0, stdoutOffset: 0, stderrOffset: 0 }))
        ws.send(
          JSON.stringify({
            type: 'exit',
            status: 'exited',
            exitCode: 7,
            signal: null,
            timedOut: false,
            stdoutOffset: 0,
            stderrOffset: 0,
          }),
        )
        clearInterval(timer)
      }, 100)
    },
  }
  t.teardown(() => clearInterval(timer))
  const { attachment, countConnections } = await start('cat', pinging, { idleTimeoutMs: 1500 })
  t.match(await attachment.result, { exitCode: 7 })
  t.equal(countConnections(), 1)
})

t.test('reconnects when the server accepts the connection but does not respond', async (t) => {
  const { attachment, countConnections } = await start('exit 5', { kind: 'hang' }, { idleTimeoutMs: 200 })
  t.match(await attachment.result, { exitCode: 5 })
  t.equal(countConnections(), 2)
})

t.test('the signal ends the attachment, also without a connection', async (t) => {
  const { attachment, controller } = await start('sleep 60', { kind: 'hang' })
  const reason = new Error('stop')
  controller.abort(reason)
  await t.rejects(attachment.result, reason)
  t.equal(await attachment.writeStdin(Buffer.from('a')), false)
})

t.test('an error of the sink ends the attachment', async (t) => {
  const error = new Error('disk full')
  const sink: OutputSink = { write: () => Promise.reject(error), reportMissing: () => undefined }
  const { attachment } = await start('echo a; sleep 60', { kind: 'cut_sent', afterBytes: 1e9 }, { sink })
  await t.rejects(attachment.result, error)
})

t.test('detach is repeated when the connection is lost', async (t) => {
  const { attachment, processId } = await start('sleep 60', { kind: 'cut_received', afterBytes: 0 })
  attachment.detach()
  t.equal(await attachment.result, null)
  const { json } = await edge('fig', 'GET', '/exec')
  t.match(json.processes, [{ processId, running: true }])
})
