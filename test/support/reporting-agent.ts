// An agent that sends given lines on its report stream.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { Test } from 'tap'
import type { NextReports, ReportAck } from '../../shared/api/next-reports.ts'
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
  const agent = await startTestAgent(box, url, (router) =>
    router.add('POST', '/reports/next', async ({ body, signal }) => {
      ack = (body as NextReports).acks.at(-1) ?? ack
      for (;;) {
        const chunk: Buffer | null = reports.read()
        if (chunk !== null) return chunk
        await once(reports, 'readable', { signal })
      }
    }),
  )
  t.after(() => agent.close())
  return {
    send: (lines) => void reports.write(lines.map((line) => `${JSON.stringify(line)}\n`).join('')),
    lastAck: () => ack,
  }
}
