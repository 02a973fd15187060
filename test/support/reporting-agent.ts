// An agent that sends given lines on its report stream.
import { PassThrough } from 'node:stream'
import type { Test } from 'tap'
import type { ReportAck } from '../../shared/api/reports.ts'
import { startTestAgent } from './tunnel.ts'

export type ReportingAgent = {
  send(lines: readonly object[]): void
  /** The last acknowledgement of the coordinator. */
  lastAck(): ReportAck | undefined
}

/** Disconnects when the test ends. */
export async function startReportingAgent(
  t: Test,
  box: Parameters<typeof startTestAgent>[0],
  url: string,
): Promise<ReportingAgent> {
  const reports = new PassThrough()
  let ack: ReportAck | undefined
  const agent = await startTestAgent(box, url, (app) => {
    app.get('/reports', (_request, reply) => reply.send(reports))
    app.post<{ Body: ReportAck }>('/reports/ack', async (request, reply) => {
      ack = request.body
      return reply.status(204).send()
    })
  })
  t.after(() => agent.close())
  return {
    send: (lines) => void reports.write(lines.map((line) => `${JSON.stringify(line)}\n`).join('')),
    lastAck: () => ack,
  }
}
